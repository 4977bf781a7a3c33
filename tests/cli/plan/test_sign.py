"""`kaiza plan approve --sign`: a signature that holds in every clone, and nothing that would not count."""

import json
import shutil

import pytest
from agents import edit, hash_of, plan
from repositories import make_key, read_stored, signer_line, trust
from scenes import make_ready, records

from kaiza.domain.plans.parser import parse
from kaiza.store.config import trusted_config
from kaiza.store.disk import state_dir
from kaiza.store.trust.signed_plans import verify_signature

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="there is no ssh-keygen")

EXPIRES = 'expires: "2099-01-01T00:00:00Z"\n'


@pytest.fixture(autouse=True)
def _own_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(trusted_config, "MACHINE_DIRECTORY", tmp_path / "etc")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def key(workspace, tmp_path):
    plan(workspace, status="DRAFT", more=EXPIRES)
    key = make_key(tmp_path)
    trust(workspace, project="app", signers=signer_line(key))
    return key


def sign(screen, *more, answer="y"):
    prompt = screen("plan", "approve", "PLAN-1", "--as", "Ann", "--sign", *more)
    prompt.answer(answer)
    return prompt.end()


def status(root):
    return verify_signature(str(root), state_dir.path_of(str(root)), read_stored(root))


def approvals(root):
    return [each["detail"] for each in records(root) if (each["detail"] or {}).get("action") == "approve"]


def seals(root):
    return [each["detail"] for each in records(root) if each["kind"] == "plan"]


def test_a_draft_is_approved_signed_and_recorded_with_its_signer(workspace, key, screen):
    assert sign(screen, "--key", str(key)) == 0

    assert read_stored(workspace).parsed.plan.status == "APPROVED"
    assert status(workspace).signer == "ann@example.org"
    assert [each["signer"] for each in approvals(workspace)] == ["ann@example.org"]
    assert [seal["how"] for seal in seals(workspace)] == ["signed"]


def test_a_plan_that_is_approved_already_is_signed_as_it_is(workspace, key, screen):
    before = plan(workspace, more=EXPIRES)

    assert sign(screen, "--key", str(key)) == 0
    assert hash_of(workspace) == before
    assert status(workspace).signer == "ann@example.org"


@pytest.mark.parametrize("name", ["id_ed25519", "id_ed25519_sk"])
def test_the_only_usual_key_is_taken_without_being_named(workspace, key, screen, tmp_path, name):
    (tmp_path / ".ssh").mkdir()
    shutil.copy(key, tmp_path / ".ssh" / name)

    assert sign(screen) == 0
    assert status(workspace).signer == "ann@example.org"


def test_of_two_usual_keys_one_has_to_be_named(workspace, key, kaiza, tmp_path):
    (tmp_path / ".ssh").mkdir()
    for name in ("id_ed25519", "id_ed25519_sk"):
        shutil.copy(key, tmp_path / ".ssh" / name)

    assert kaiza("plan", "approve", "PLAN-1", "--sign").status == 1
    assert approvals(workspace) == []


def test_a_key_that_is_not_trusted_approves_nothing(workspace, key, screen, tmp_path):
    assert sign(screen, "--key", str(make_key(tmp_path, "other"))) == 1

    assert read_stored(workspace).parsed.plan.status == "DRAFT"
    assert (approvals(workspace), seals(workspace)) == ([], [])
    assert not (workspace / "plans/PLAN-1.md.sig").exists()


def test_declining_signs_nothing(workspace, key, screen):
    assert sign(screen, "--key", str(key), answer="no") == 1
    assert not (workspace / "plans/PLAN-1.md.sig").exists()


@pytest.mark.parametrize("case", ["no expiry", "no project", "no key", "no such key"])
def test_what_is_missing_is_said_before_any_question(workspace, key, kaiza, case):
    if case == "no expiry":
        edit(workspace, EXPIRES, "")
    if case == "no project":
        trust(workspace)
    options = {"no key": [], "no such key": ["--key", "gone"]}.get(case, ["--key", str(key)])

    assert kaiza("plan", "approve", "PLAN-1", "--sign", *options).status == 1
    assert approvals(workspace) == []


def test_a_key_without_sign_is_a_wrong_command(workspace, key, kaiza):
    assert kaiza("plan", "approve", "PLAN-1", "--key", str(key)).status == 2


def test_where_signatures_are_required_an_approval_without_one_is_refused(workspace, key, kaiza):
    (workspace / "kaiza.toml").write_text('[approval]\nrequire = "signature"\n')

    assert kaiza("plan", "approve", "PLAN-1").status == 1


def test_a_clone_with_the_same_project_and_signer_accepts_the_signature(workspace, key, screen, tmp_path):
    sign(screen, "--key", str(key))
    clone = tmp_path / "clone"
    shutil.copytree(workspace / "plans", clone / "plans")
    make_ready(clone)

    trust(clone, project="other", signers=signer_line(key))
    assert status(clone).signer is None
    trust(clone, project="app")
    assert status(clone).signer == "ann@example.org"


def test_the_answer_as_json_names_the_signer(workspace, key, screen, tmp_path):
    out = tmp_path / "out.json"
    prompt = screen("plan", "approve", "PLAN-1", "--sign", "--key", str(key), "--json", out=out)
    prompt.answer("y")

    assert prompt.end() == 0
    document = json.loads(out.read_text())
    assert document["signer"] == "ann@example.org"
    assert document["plan_hash"] == parse((workspace / "plans/PLAN-1.md").read_bytes(), "PLAN-1").plan_hash
