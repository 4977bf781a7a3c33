"""`kaiza audit verify` and `accept`: verdicts, and accepting damage after confirmation."""

import json
import subprocess
import sys

import pytest

from kaiza.app import App
from kaiza.store.audit.log import AuditLog

REASON = "a backup was restored"


@pytest.fixture
def damaged(story, log):
    """The second record was edited after it was hashed."""
    log.write_bytes(log.read_bytes().replace(b"src/app.py", b"src/spy.py", 1))
    return log


def test_an_intact_log_is_a_success(kaiza, story):
    result = kaiza("audit", "verify", "--json")

    assert result.status == 0
    assert json.loads(result.out) == {
        "verdict": "intact",
        "records": 8,
        "head": {"seq": 8, "entry_hash": story[-1].entry_hash},
        "anchored": False,
        "summary": "The log is intact: 8 records.",
    }


def test_a_log_written_by_kaiza_has_a_checkpoint(kaiza, workspace, body):
    writer = AuditLog(str(workspace), follow=lambda _record: None)
    writer.append(body, durable=True)
    writer.close()

    assert json.loads(kaiza("audit", "verify", "--json").out)["anchored"] is True
    assert "nothing was cut off the end" in kaiza("audit", "verify").out


def test_people_and_agents_get_the_same_verdict(kaiza, workspace):
    app = App((str(workspace),))
    app.call("begin_session", {"role": "WINDSURF"})
    person = json.loads(kaiza("audit", "verify", "--json").out)
    agent = app.call("verify_audit_log", {}).output
    app.close()

    assert {name: value for name, value in person.items() if name != "anchored"} == dict(agent)


def test_damage_is_a_failure_and_names_audit_accept(kaiza, damaged):
    result, document = kaiza("audit", "verify"), json.loads(kaiza("audit", "verify", "--json").out)

    assert result.status == 1
    assert (document["verdict"], document["first_fault"]["seq"], document["records"]) == ("broken", 2, 1)
    assert "kaiza audit accept" in result.out


@pytest.mark.parametrize(
    ("seq", "digest", "status", "verdict"),
    [(8, None, 0, "intact"), (3, None, 0, "intact"), (8, "f" * 64, 1, "replaced"), (9, "f" * 64, 1, "cut_off")],
)
def test_a_saved_checkpoint_is_compared_with_the_log(kaiza, story, seq, digest, status, verdict):
    head = f"{seq}:{digest or story[seq - 1].entry_hash}"
    result = kaiza("audit", "verify", "--json", "--head", head)

    assert (result.status, json.loads(result.out)["verdict"]) == (status, verdict)


@pytest.mark.parametrize("head", ["8", "0:" + "f" * 64, "8:" + "F" * 64, "8:ff", ":"])
def test_an_invalid_checkpoint_is_a_usage_error(kaiza, story, head):
    assert kaiza("audit", "verify", "--head", head).status == 2


def test_an_unreadable_log_exits_with_3(kaiza, workspace, log):
    log.mkdir()
    result = kaiza("audit", "verify")

    assert (result.status, result.out) == (3, "")
    assert result.err.count("\n") == 1


def test_damage_is_accepted_after_confirmation_at_the_terminal(kaiza, damaged, screen):
    before = damaged.read_bytes()
    prompt = screen("audit", "accept", "--reason", REASON, "--as", "Ann")
    shown = prompt.answer("y")

    assert prompt.end() == 0
    assert "Broken at record 2" in shown
    assert "audit-log.damaged-1.jsonl" in shown
    assert (damaged.parent / "audit-log.damaged-1.jsonl").read_bytes() == before
    assert kaiza("audit", "verify").status == 0
    first = json.loads(damaged.read_bytes())
    assert (first["kind"], first["seq"], first["detail"]["person"], first["detail"]["reason"]) == (
        "person",
        1,
        "Ann",
        REASON,
    )


def test_any_other_answer_accepts_nothing(kaiza, damaged, screen):
    before = damaged.read_bytes()
    prompt = screen("audit", "accept", "--reason", REASON)
    prompt.answer("accept")

    assert prompt.end() == 1
    assert damaged.read_bytes() == before
    assert sorted(path.name for path in damaged.parent.iterdir()) == ["audit-log.jsonl"]


def test_acceptance_is_read_from_the_terminal_even_if_the_streams_are_redirected(damaged, screen, tmp_path):
    words = ["audit", "accept", "--reason", REASON, "--json"]
    piped = screen(*words, stdin=b"y\n", out=tmp_path / "out")
    piped.answer("no")

    assert piped.end() == 1
    assert (tmp_path / "out").read_bytes() == b""


def test_without_a_terminal_nothing_is_accepted(damaged, workspace):
    before = damaged.read_bytes()
    result = subprocess.run(
        [sys.executable, "-m", "kaiza", "audit", "accept", "--reason", REASON],
        input=b"accept\n", capture_output=True, check=False, cwd=workspace, start_new_session=True,
    )  # fmt: skip

    assert (result.returncode, result.stdout) == (3, b"")
    assert b"terminal" in result.stderr
    assert damaged.read_bytes() == before


def test_an_intact_log_has_nothing_to_accept(kaiza, story, log):
    assert kaiza("audit", "accept", "--reason", REASON).status == 1
    assert len(log.read_bytes().splitlines()) == 8


@pytest.mark.parametrize("words", [[], ["--reason", " "], ["--reason", "x", "--yes"]])
def test_a_reason_is_required_and_the_confirmation_cannot_be_waived(kaiza, damaged, words):
    assert kaiza("audit", "accept", *words).status == 2


def test_a_missing_log_is_accepted_too(kaiza, workspace, body, screen, log):
    writer = AuditLog(str(workspace), follow=lambda _record: None)
    writer.append(body, durable=True)
    writer.close()
    log.unlink()
    judged = json.loads(kaiza("audit", "verify", "--json").out)["verdict"]
    prompt = screen("audit", "accept", "--reason", REASON)
    prompt.answer("y")

    assert judged == "missing"
    assert prompt.end() == 0
    assert kaiza("audit", "verify").status == 0


def test_the_question_cannot_control_the_terminal(damaged, screen):
    prompt = screen("audit", "accept", "--reason", "x\u202ey\x1b[2J", "--as", "A\x1b[1mnn", NO_COLOR="1")
    shown = prompt.answer("no")
    prompt.end()

    assert "x\\u202ey\\x1b[2J" in shown
    assert "\x1b" not in shown
