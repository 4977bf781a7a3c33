"""`kaiza trust`: a person decides which merges and signatures approve plans in a workspace."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from agents import plan
from repositories import TRUSTED, make_key, merge, run_git, signer_line
from scenes import records

from kaiza.store.config import trusted_config
from kaiza.store.disk import state_dir
from kaiza.store.trust.signers import read_signers
from kaiza.store.trust.trust_file import SIGNERS_NAME, read_trust

pytestmark = pytest.mark.skipif(
    not (shutil.which("git") and shutil.which("ssh-keygen")), reason="there is no git or no ssh-keygen"
)


@pytest.fixture(autouse=True)
def _own_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(trusted_config, "MACHINE_DIRECTORY", tmp_path / "etc")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def merged(workspace):
    plan(workspace)
    merge(workspace)
    return workspace


@pytest.fixture
def line(tmp_path):
    return signer_line(make_key(tmp_path)).strip()


def trusted(workspace):
    return read_trust(state_dir.path_of(str(workspace)))


def signers(workspace):
    return [signer.principal for signer in read_signers(state_dir.path_of(str(workspace))).signers]


def decisions(workspace, action):
    return [each["detail"] for each in records(workspace) if (each["detail"] or {}).get("action") == action]


def trust_merged(screen, *more, answer="y"):
    prompt = screen("trust", "merged", *more)
    shown = prompt.answer(answer)
    return prompt.end(), shown


def add_signer(screen, line, *more, project="", answer="y"):
    prompt = screen("trust", "signer", "add", line, *more)
    if project is not None:
        prompt.answer(project, "Project")
    shown = prompt.answer(answer)
    return prompt.end(), shown


def without_terminal(*words):
    return subprocess.run(
        [sys.executable, "-m", "kaiza", *words],
        input=b"y\ny\n", capture_output=True, check=False, start_new_session=True, timeout=60,
    )  # fmt: skip


def test_a_branch_is_trusted_after_a_yes_and_the_decision_recorded(merged, screen, kaiza):
    status, shown = trust_merged(screen, "--ref", "origin/main", "--as", "Ann")

    assert status == 0
    assert TRUSTED in shown
    assert trusted(merged).merged_refs == (TRUSTED,)
    assert decisions(merged, "trust") == [{"action": "trust", "person": "Ann", "merged": "on", "ref": TRUSTED}]
    assert json.loads(kaiza("trust", "--json").out)["merged"] == [
        {"ref": TRUSTED, "source": "kaiza trust", "problem": None}
    ]


def test_the_default_branch_of_the_remote_is_proposed(merged, screen):
    run_git(merged, "symbolic-ref", "refs/remotes/origin/HEAD", TRUSTED)

    assert trust_merged(screen)[0] == 0
    assert trusted(merged).merged_refs == (TRUSTED,)


def test_any_other_answer_changes_nothing(merged, screen):
    assert trust_merged(screen, "--ref", "origin/main", answer="no")[0] == 1
    assert trusted(merged).merged_refs == ()
    assert decisions(merged, "trust") == []


@pytest.mark.parametrize("words", [["merged", "--ref", "origin/main"], ["signer", "add", "LINE", "--project", "app"]])
def test_without_a_terminal_nothing_is_trusted(merged, line, words):
    completed = without_terminal("trust", *(line if word == "LINE" else word for word in words))

    assert completed.returncode == 3
    assert (trusted(merged).merged_refs, signers(merged)) == ((), [])
    assert records(merged) == []


@pytest.mark.parametrize("words", [[], ["--ref", "origin/gone"], ["--ref", "origin/main~1"], ["--off"]])
def test_a_branch_that_is_not_there_is_refused_without_a_question(merged, kaiza, words):
    assert kaiza("trust", "merged", *words).status == 1
    assert records(merged) == []


def test_off_ends_trust_at_once_without_a_terminal(merged, screen):
    trust_merged(screen, "--ref", "origin/main")

    assert without_terminal("trust", "merged", "--off", "--as", "Ann").returncode == 0
    assert trusted(merged).merged_refs == ()
    assert decisions(merged, "trust")[-1]["merged"] == "off"


def test_trust_can_be_ended_under_settings_that_cannot_be_read(merged, screen, kaiza):
    trust_merged(screen, "--ref", "origin/main")
    (merged / "kaiza.toml").write_text("nonsense")

    assert kaiza("trust", "merged", "--off").status == 0
    assert trusted(merged).merged_refs == ()


def test_a_foreign_workspace_is_not_trusted_before_it_is_adopted(story, merged, line, kaiza):
    shutil.rmtree(state_dir.path_of(str(merged)))  # as if its log came from another machine
    before = records(merged)

    assert kaiza("trust", "merged", "--ref", "origin/main").status == 1
    assert kaiza("trust", "signer", "add", line, "--project", "app").status == 1
    assert (trusted(merged).merged_refs, signers(merged)) == ((), [])
    assert records(merged) == before


def test_a_ref_that_is_gone_is_shown_with_the_reason(merged, screen, kaiza):
    trust_merged(screen, "--ref", "origin/main")
    run_git(merged, "update-ref", "-d", TRUSTED)

    shown = kaiza("trust", "--json")

    assert shown.status == 1
    assert json.loads(shown.out)["merged"][0]["problem"]


def test_the_first_signer_names_the_project_and_the_directory_is_proposed(workspace, line, screen, kaiza):
    status, shown = add_signer(screen, line, "--as", "Ann")

    assert status == 0
    assert f"[{workspace.name}]" in shown
    assert signers(workspace) == ["ann@example.org"]
    assert trusted(workspace).project == workspace.name
    (decision,) = decisions(workspace, "signer")
    assert (decision["change"], decision["keys"][0]["principal"]) == ("add", "ann@example.org")
    assert decision["keys"][0]["fingerprint"] in shown
    summary = json.loads(kaiza("trust", "--json").out)
    assert summary["project"] == {"name": workspace.name, "source": "kaiza trust"}
    assert [entry["principal"] for entry in summary["signers"]] == ["ann@example.org"]


def test_the_second_signer_is_for_the_same_project(workspace, line, screen, tmp_path, kaiza):
    add_signer(screen, line, project="app")
    path = tmp_path / "bob.signer"
    path.write_text(f"# Bob\n{signer_line(make_key(tmp_path, 'bob'), 'bob@example.org')}")

    assert kaiza("trust", "signer", "add", str(path), "--project", "other").status == 1
    assert add_signer(screen, str(path), project=None)[0] == 0
    assert signers(workspace) == ["ann@example.org", "bob@example.org"]
    assert trusted(workspace).project == "app"


def test_a_key_that_could_sign_anything_is_refused(workspace, line, kaiza):
    assert kaiza("trust", "signer", "add", line.replace('namespaces="kaiza-plan" ', ""), "--project", "a").status == 1
    assert signers(workspace) == []


@pytest.mark.parametrize("name", ["two\nlines", " ", "x" * 101])
def test_a_project_name_is_one_short_line(workspace, line, kaiza, name):
    assert kaiza("trust", "signer", "add", line, "--project", name).status == 1


def test_a_removed_signer_is_gone_at_once_without_a_terminal(workspace, line, screen):
    add_signer(screen, line, "--project", "app", project=None)

    assert without_terminal("trust", "signer", "remove", "ann@example.org").returncode == 0
    assert signers(workspace) == []
    assert decisions(workspace, "signer")[-1]["change"] == "remove"
    assert without_terminal("trust", "signer", "remove", "ann@example.org").returncode == 1


def test_signers_are_listed_as_lines_and_one_that_does_not_count_is_reported(workspace, line, screen, kaiza):
    add_signer(screen, line, "--project", "app", project=None)
    listed = kaiza("trust", "signer", "list")
    assert (listed.status, listed.out.split()[:2]) == (0, line.split()[:2])

    with (state_dir.path_of(str(workspace)) / SIGNERS_NAME).open("a") as file:
        file.write("* ssh-ed25519 AAAA\n")
    assert kaiza("trust", "signer", "list").status == 1
    assert kaiza("trust").status == 1


def test_the_machines_signers_are_not_changed_here(workspace, line, kaiza, tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / SIGNERS_NAME).write_text(line)

    assert kaiza("trust", "signer", "add", line, "--project", "app").status == 1
    assert kaiza("trust", "signer", "remove", "ann@example.org").status == 1
    assert json.loads(kaiza("trust", "--json").out)["signers"][0]["source"] == str(tmp_path / "etc" / SIGNERS_NAME)


def test_what_is_trusted_by_configuration_is_shown_with_its_source(merged, kaiza):
    directory = Path(os.environ["XDG_CONFIG_HOME"], "kaiza")
    directory.mkdir(parents=True)
    (directory / "config.toml").write_text(f'[[trust.merged]]\nrepository = "{merged}"\nref = "origin/main"\n')

    (entry,) = json.loads(kaiza("trust", "--json").out)["merged"]
    assert (entry["ref"], entry["problem"]) == ("origin/main", None)
    assert "config.toml" in entry["source"]


def test_an_option_before_the_subcommand_holds_for_it(merged, kaiza, tmp_path):
    other = tmp_path / "other"
    for name in ("plans", "audit"):
        (other / name).mkdir(parents=True)

    assert kaiza("trust", "--workspace", str(other), "merged", "--ref", "origin/main").status == 1
    assert json.loads(kaiza("trust", "--json", "signer", "list").out) == {"signers": [], "problems": []}


def test_nothing_trusted_is_a_whole_answer(workspace, kaiza):
    shown = kaiza("trust", "--json")

    assert shown.status == 0
    assert json.loads(shown.out) == {
        "merged": [], "project": None, "signers": [], "problems": [], "approval": "edit"
    }  # fmt: skip
    assert kaiza("trust").out


def test_trust_may_be_set_to_need_a_word(merged, workspace, line, screen):
    (workspace / "kaiza.toml").write_text('[approval]\nconfirm = "id"\n')
    branch = screen("trust", "merged", "--ref", "origin/main")
    branch.answer("y", "Type merged")
    key = screen("trust", "signer", "add", line, "--project", "app")
    key.answer("y", "Type signer")

    assert [branch.end(), key.end()] == [1, 1]
    assert (trusted(workspace).merged_refs, signers(workspace)) == ((), [])


def test_screens_fit_into_80_columns(merged, line, screen):
    trust_merged(screen, "--ref", "origin/main")
    prompt = screen("trust", "signer", "add", line, "--project", "app", columns=80)
    shown = prompt.answer("y")
    prompt.end()
    listing = screen("trust", columns=80)
    listing.end()

    assert max(map(len, f"{shown}\n{listing.shown}".split("\n"))) <= 80


def test_status_and_doctor_name_what_is_trusted(merged, screen, kaiza):
    trust_merged(screen, "--ref", "origin/main")
    assert TRUSTED in kaiza("status").out
    assert TRUSTED in kaiza("doctor").out

    run_git(merged, "update-ref", "-d", TRUSTED)
    (check,) = [each for each in json.loads(kaiza("doctor", "--json").out)["checks"] if each["check"] == "trust"]
    assert check["verdict"] == "warning"
