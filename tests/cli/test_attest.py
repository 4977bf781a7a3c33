"""`kaiza attest`: what a session or a plan changed, as an in-toto Statement that others can verify."""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest
from agents import plan
from repositories import make_key
from scenes import records

from kaiza.app import App

ROOT = Path(__file__).parent.parent.parent
SCHEMA = json.loads((ROOT / "schemas/attestation/changes-v1.json").read_text())
WIDE = '{modify: ["src/**"], create: ["src/**"], delete: ["src/**"], move: [{from: "src/**", to: "src/**"}]}'


def sha(content):
    return hashlib.sha256(content).hexdigest()


def git(root, *words):
    author = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *author, *words], cwd=root, check=True, capture_output=True)


@pytest.fixture
def agent(workspace):
    (workspace / "src").mkdir()
    (workspace / "src/a").write_text("1\n")
    (workspace / "src/old").write_text("old\n")
    approved = plan(workspace, scope=WIDE)
    app = App([str(workspace)])

    def change(tool, **arguments):
        outcome = app.call(tool, {"plan_hash": approved, **arguments})
        assert outcome.envelope is None, outcome.envelope
        return outcome.output.get("request_id")

    change.begin = lambda: app.call("begin_session", {"role": "WINDSURF"}).output["session_id"]
    change.app, change.plan_hash = app, approved
    change.session = change.begin()
    yield change
    app.close()


def work(agent):
    agent("write_file", path="src/a", content="2\n", expected_hash=sha(b"1\n"))
    agent("write_file", path="src/a", content="3\n", expected_hash=sha(b"2\n"))
    agent("write_file", path="src/new", content="n\n")
    agent("move_file", source="src/old", destination="src/moved", expected_hash=sha(b"old\n"))
    agent("write_file", path="src/gone", content="g\n")
    agent("delete_file", path="src/gone", expected_hash=sha(b"g\n"))


def attest(kaiza, *words):
    result = kaiza("attest", *words)
    assert result.status == 0, result.err
    statement = json.loads(result.out)
    jsonschema.Draft202012Validator(SCHEMA).validate(statement)
    return statement


def subjects(statement):
    return {one["name"]: one["digest"] for one in statement["subject"]}


def test_a_sessions_subjects_are_the_files_that_it_left_with_their_hash(kaiza, agent, workspace):
    work(agent)
    agent.app.call("end_session", {})
    statement = attest(kaiza, "--session", agent.session[:8])
    predicate = statement["predicate"]
    own = [each for each in records(workspace) if each["session_id"] == agent.session]

    assert subjects(statement) == {
        name: {"sha256": sha((workspace / name).read_bytes())} for name in ("src/a", "src/moved", "src/new")
    }
    assert [(row["path"], row["operation"]) for row in predicate["changes"]] == [
        ("src/a", "modify"), ("src/moved", "create"), ("src/new", "create"), ("src/old", "delete"),
    ]  # fmt: skip
    assert predicate["policy"][0]["digest"] == {"sha256": agent.plan_hash}
    assert predicate["audit"] == {
        "first": {"seq": own[0]["seq"], "entry_hash": own[0]["entry_hash"]},
        "last": {"seq": own[-1]["seq"], "entry_hash": own[-1]["entry_hash"]},
        "count": len(own),
    }
    assert predicate["session"]["session_id"] == agent.session
    assert predicate["session"]["ended_at"] == own[-1]["timestamp"]
    assert predicate["git"] is None
    assert attest(kaiza, "--session", agent.session) == statement


def test_what_was_undone_is_not_attested(kaiza, agent, workspace):
    agent("write_file", path="src/a", content="2\n", expected_hash=sha(b"1\n"))
    new = agent("write_file", path="src/new", content="n\n")
    agent("undo_changes", request_ids=[new])
    one = attest(kaiza, "--session", agent.session)
    kaiza("undo", "--last", "--yes")
    none = kaiza("attest", "--session", agent.session)

    assert subjects(one) == {"src/a": {"sha256": sha(b"2\n")}}
    assert (none.status, none.out) == (1, "")


def test_a_plan_is_attested_over_all_its_sessions(kaiza, agent, workspace):
    agent("write_file", path="src/a", content="2\n", expected_hash=sha(b"1\n"))
    agent.app.call("end_session", {})
    agent.begin()
    agent("write_file", path="src/new", content="n\n")
    statement = attest(kaiza, "--plan", "PLAN")

    assert subjects(statement) == {"src/a": {"sha256": sha(b"2\n")}, "src/new": {"sha256": sha(b"n\n")}}
    assert (statement["predicate"]["plan"], statement["predicate"]["session"]) == ("PLAN-1", None)


def test_the_commit_is_a_subject_only_if_it_has_exactly_these_files(kaiza, agent, workspace):
    git(workspace, "init", "-b", "main")
    git(workspace, "add", "src")
    git(workspace, "commit", "-m", "before")
    work(agent)
    before = attest(kaiza, "--session", agent.session)
    git(workspace, "add", "src")
    git(workspace, "commit", "-m", "after")
    commit = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=workspace, text=True).strip()
    after = attest(kaiza, "--session", agent.session)
    (workspace / "src/old").write_text("it is back\n")
    git(workspace, "add", "src")
    git(workspace, "commit", "-m", "the deleted file is back")
    back = attest(kaiza, "--session", agent.session)

    assert [one["predicate"]["git"]["holds"] for one in (before, after, back)] == [False, True, False]
    assert subjects(after)["git"] == {"gitCommit": commit}
    assert "git" not in subjects(before) | subjects(back)
    assert after["predicate"]["git"] == {"commit": commit, "branch": "main", "holds": True}


@pytest.mark.parametrize("damage", ["edited", "cut off", "torn"])
def test_a_log_that_is_not_intact_is_not_attested(kaiza, agent, workspace, log, damage):
    work(agent)
    agent.app.close()
    lines = log.read_bytes().splitlines(keepends=True)
    content = {
        "edited": [lines[0].replace(b"begin_session", b"begin_sessiom"), *lines[1:]],
        "cut off": lines[:-2],
        "torn": [*lines, b'{"half'],
    }[damage]
    log.write_bytes(b"".join(content))
    result = kaiza("attest", "--session", agent.session)

    assert (result.status, result.out) == (1, "")
    assert "not intact" in result.err


def test_a_statement_is_written_to_a_new_file_only(kaiza, agent, workspace, tmp_path):
    work(agent)
    target = tmp_path / "changes.json"
    printed = kaiza("attest", "--session", agent.session)
    written = kaiza("attest", "--session", agent.session, "--output", str(target))
    again = kaiza("attest", "--session", agent.session, "--output", str(target))

    assert (written.status, written.out, again.status) == (0, "", 1)
    assert target.read_bytes() == printed.raw


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="there is no ssh-keygen")
def test_a_signature_verifies_with_ssh_keygen_and_ends_with_any_edit(kaiza, agent, workspace, tmp_path):
    work(agent)
    key, target = make_key(tmp_path), tmp_path / "changes.json"
    result = kaiza("attest", "--session", agent.session, "--sign", "--key", str(key), "--output", str(target))
    signers = tmp_path / "signers"
    signers.write_text(f'ann namespaces="kaiza-attestation" {key.with_suffix(".pub").read_text()}')
    verify = [
        "ssh-keygen",
        "-Y",
        "verify",
        "-f",
        signers,
        "-I",
        "ann",
        "-n",
        "kaiza-attestation",
        "-s",
        f"{target}.sig",
    ]
    content = target.read_bytes()
    sound, edited = (
        subprocess.run(verify, input=each, capture_output=True, check=False)
        for each in (content, content.replace(b"modify", b"create"))
    )

    assert result.status == 0
    assert (sound.returncode, edited.returncode != 0) == (0, True)


def test_a_key_that_cannot_sign_leaves_no_file(kaiza, agent, workspace, tmp_path):
    work(agent)
    (tmp_path / "key").write_text("no key")
    words = ["attest", "--session", agent.session, "--sign", "--key", str(tmp_path / "key")]

    assert kaiza(*words, "--output", str(tmp_path / "x.json")).status == 3
    assert not list(tmp_path.glob("x.json*"))


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ([], 2),
        (["--session", "a", "--plan", "PLAN-1"], 2),
        (["--session", "a", "--sign"], 2),
        (["--session", "a", "--key", "k"], 2),
        (["--session", "0000"], 1),
        (["--plan", "PLAN-9"], 1),
    ],
)
def test_what_cannot_be_attested_is_refused(kaiza, workspace, words, status):
    assert kaiza("attest", *words).status == status
