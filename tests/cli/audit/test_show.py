"""`kaiza audit show`, `tail`, `head` and `export`: the log for people and for programs."""

import json
import os
import subprocess
import sys
from itertools import islice

import pytest

from kaiza.cli.console import audit_reader
from kaiza.domain.audit import record
from kaiza.render import terminal


def seqs(lines):
    return [json.loads(line)["seq"] for line in lines.splitlines()]


def test_records_are_shown_oldest_first_one_row_each(kaiza, story):
    result = kaiza("audit", "show")

    assert result.status == 0
    assert result.out.splitlines()[0].split() == ["time", "UTC", "seq", "by", "tool", "path", "outcome", "code"]
    assert [int(line.split()[2]) for line in result.out.splitlines()[1:]] == list(range(1, 9))
    assert "\x1b" not in result.out


def test_json_is_the_log_line_for_line(kaiza, story, log):
    assert kaiza("audit", "show", "--json").raw == log.read_bytes()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--session", "3f2b"], [1, 2, 3, 4, 5, 6]),
        (["--session", "9a9a9a9a-0000-4000-8000-000000000002"], [7, 8]),
        (["--tool", "read_file"], [2, 5]),
        (["--tool", "read_file", "--tool", "end_session"], [2, 5, 8]),
        (["--role", "ANTIGRAVITY"], [7, 8]),
        (["--kind", "intent"], [3]),
        (["--plan", "PLAN-1"], [3, 4, 6]),
        (["--path", "src"], [2, 3, 4, 6]),
        (["--path", "src/app.py"], [2, 3, 4]),
        (["--path", "./src//app.py"], [2, 3, 4]),
        (["--path", "sr"], []),
        (["--path", "**/*.md"], [5]),
        (["--path", "src/*.py"], [2, 3, 4, 6]),
        (["--outcome", "error"], [6]),
        (["--outcome", "ok", "--tool", "write_file"], [4]),
        (["--code", "PLAN_SCOPE_VIOLATION"], [6]),
        (["--since", "2025-03-18T09:01"], [7, 8]),
        (["--since", "2025-03-18T10:00:00.001+01:00", "--until", "2025-03-18T09:00:04Z"], [2, 3, 4, 5]),
        (["--until", "2025-03-18"], [1, 2, 3, 4, 5, 6, 7, 8]),
        (["--until", "2025-03-17"], []),
        (["--since", "2025-03-19"], []),
        (["3"], [3]),
        (["3-5"], [3, 4, 5]),
        (["3-5", "--kind", "call"], [4, 5]),
    ],
)
def test_records_are_selected(kaiza, story, words, expected):
    result = kaiza("audit", "show", "--json", *words)

    assert seqs(result.out) == expected
    assert result.status == 0


def test_a_missing_record_is_a_failure(kaiza, story):
    result = kaiza("audit", "show", "99")

    assert (result.status, result.out) == (1, "")


def test_one_record_is_shown_in_full(kaiza, story):
    result = kaiza("audit", "show", "6")

    assert result.out.splitlines()[0].split() == ["seq", "6"]
    assert story[5].entry_hash in result.out
    assert "path=src/other.py" in result.out


@pytest.mark.parametrize(
    "option", [["--since", "yesterday"], ["--path", "[a"], ["x"], ["--outcome", "maybe"], ["--nothing"]]
)
def test_an_invalid_filter_is_a_usage_error(kaiza, story, option):
    result = kaiza("audit", "show", *option)

    assert (result.status, result.out) == (2, "")
    assert "kaiza audit show" in result.err


def test_the_last_records_are_shown(kaiza, story):
    assert seqs(kaiza("audit", "tail", "-n", "3", "--json").out) == [6, 7, 8]
    assert seqs(kaiza("audit", "tail", "-n", "1", "--outcome", "error", "--json").out) == [6]
    assert seqs(kaiza("audit", "tail", "-n", "0", "--json").out) == []


def test_tail_follows_other_writers_and_a_new_log(story, workspace, log, body):
    words = [sys.executable, "-m", "kaiza", "audit", "tail", "-f", "-n", "1", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, cwd=workspace, env=dict(os.environ)) as tail:
        try:
            first = json.loads(tail.stdout.readline())
            line, ninth = record.serialize_and_hash(body(at=200), 9, story[-1].entry_hash)
            with log.open("ab") as file:
                file.write(line)
            second = json.loads(tail.stdout.readline())
            anew = log.with_name("new")
            anew.write_bytes(record.serialize_and_hash(body(at=300), 1, record.GENESIS)[0])
            anew.replace(log)
            third = json.loads(tail.stdout.readline())
        finally:
            tail.kill()

    assert (first["seq"], second["entry_hash"], third["seq"]) == (8, ninth.entry_hash, 1)


def test_head_prints_a_checkpoint_that_verify_accepts(kaiza, story):
    result = kaiza("audit", "head")

    assert result.out == f"8:{story[-1].entry_hash}\n"
    assert json.loads(kaiza("audit", "head", "--json").out) == {"seq": 8, "entry_hash": story[-1].entry_hash}
    assert kaiza("audit", "verify", "--head", result.out.strip()).status == 0


def test_an_empty_log_has_no_checkpoint(kaiza, workspace):
    assert kaiza("audit", "head").status == 1


def test_an_export_is_the_log_byte_for_byte_even_if_damaged(kaiza, story, log, tmp_path):
    result = log.read_bytes().replace(b'"seq":2,', b'"seq": 2,') + b"\x00half a li"
    log.write_bytes(result)
    whole = kaiza("audit", "export", "--output", str(tmp_path / "out.jsonl"))

    assert whole.status == 0
    assert (tmp_path / "out.jsonl").read_bytes() == result
    assert kaiza("audit", "export", "--tool", "read_file").raw.splitlines() == [
        result.splitlines()[1],
        result.splitlines()[4],
    ]


def test_an_export_never_overwrites(kaiza, story, tmp_path):
    (tmp_path / "out.jsonl").write_text("mine")

    assert kaiza("audit", "export", "--output", str(tmp_path / "out.jsonl")).status == 1
    assert (tmp_path / "out.jsonl").read_text() == "mine"


def test_paths_cannot_control_the_terminal_even_as_json(write_log, body, screen):
    write_log(body(arguments={"path": "a\x1b[2Jb\u202ecod.exe"}))
    plain, full = screen("audit", "show", columns=140), screen("audit", "show", "--json")

    assert (plain.end(), full.end()) == (0, 0)
    assert "a\\x1b[2Jb\\u202ecod.exe" in plain.shown

    assert "\u202e" not in plain.shown + full.shown
    assert json.loads(full.shown)["arguments"] == {"path": "a\x1b[2Jb\u202ecod.exe"}


def test_an_export_controls_no_terminal_and_is_byte_for_byte_in_a_pipe(write_log, body, screen, process, log):
    write_log(body(arguments={"path": "b\u202ecod.exe"}))
    shown = screen("audit", "export", columns=400)

    assert shown.end() == 0
    assert "b\\u202ecod.exe" in shown.shown
    assert "\u202e" not in shown.shown
    assert "\u202e" in log.read_text()
    assert process("audit", "export").stdout == log.read_bytes()


CONTROLS = ("\x1b[2J", "\x1b]0;t\x07", "\x9b2J", "\r", "\n", "\b", "\x7f", "\u202e", "\u2066", "\u200b", "\U000e0041")


@pytest.mark.parametrize("odd", CONTROLS, ids=ascii)
@pytest.mark.parametrize("member", ["role", "tool_name", "plan_id", "error_code", "outcome", "timestamp", "action"])
def test_no_member_of_a_record_can_control_the_terminal(write_log, body, kaiza, member, odd):
    if member in {"plan_id", "action"}:
        detail = {"action": f"a{odd}b"}
        write_log(record.new_body("person", timestamp="2025-03-18T09:00:00.000Z", plan_id=f"a{odd}b", detail=detail))
    else:
        write_log({**body(outcome="error", human_message="No."), member: f"a{odd}b"})
    shown = [kaiza("audit", *words).out for words in (["show"], ["show", "1"], ["tail"])]

    for text in shown:
        assert f"a{terminal.escape(odd)}b" in text
        assert not [char for char in text.replace("\n", "") if not char.isprintable()]
    assert [result.count("\n") for result in (shown[0], shown[2])] == [2, 2]


def test_a_terminal_gets_colour_unless_no_color_is_set(story, screen):
    bright, plain, dumb = (
        screen("audit", "show"),
        screen("audit", "show", NO_COLOR="1"),
        screen("audit", "show", TERM="dumb"),
    )
    [one.end() for one in (bright, plain, dumb)]

    assert "\x1b[31mPLAN_SCOPE_VIOLATION\x1b[0m" in bright.shown
    assert "\x1b" not in plain.shown + dumb.shown


def test_rows_fit_a_narrow_terminal(story, screen):
    narrow = screen("audit", "show", columns=80, NO_COLOR="1")
    narrow.end()

    assert "2025-03-18\n" in narrow.shown
    assert max(map(len, narrow.shown.splitlines())) <= 80


def test_a_closed_pipe_ends_without_an_error(write_log, body, workspace):
    write_log(*(body(at=at) for at in range(5000)))
    words = [sys.executable, "-m", "kaiza", "audit", "show"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=workspace) as shown:
        shown.stdout.readline()
        shown.stdout.close()
        complaint = shown.stderr.read()

    assert complaint == b""
    assert shown.returncode == 0


def test_ctrl_c_ends_with_130_and_without_a_traceback(story, screen):
    tail = screen("audit", "tail", "-f")
    tail.until("end_session")
    tail.type("\x03")

    assert tail.end() == 130
    assert "Traceback" not in tail.shown


def test_reading_is_lazy(write_log, body, workspace):
    write_log(*(body(at=at) for at in range(3000)))

    assert [one.seq for one in islice(audit_reader.read_forward(str(workspace)), 2)] == [1, 2]
    assert [one.seq for one in islice(audit_reader.read_backward(str(workspace)), 2)] == [3000, 2999]


def test_outside_a_workspace_the_message_names_the_option(kaiza, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lost, wrong = kaiza("audit", "show"), kaiza("audit", "show", "--workspace", "nowhere")

    assert (lost.status, lost.out, wrong.status) == (3, "", 3)
    assert "--workspace" in lost.err


def test_the_workspace_is_found_from_a_subdirectory(kaiza, story, workspace, monkeypatch):
    (workspace / "src" / "deep").mkdir(parents=True)
    monkeypatch.chdir(workspace / "src" / "deep")

    assert kaiza("audit", "head").status == 0
    monkeypatch.chdir("/")
    assert kaiza("audit", "head", "--workspace", str(workspace)).status == 0


def test_the_newest_records_are_shown_oldest_first(kaiza, story):
    assert seqs(kaiza("audit", "show", "-n", "3", "--json").out) == [6, 7, 8]
    assert seqs(kaiza("audit", "show", "-n", "1", "--outcome", "error", "--json").out) == [6]
    assert (kaiza("audit", "show", "-n", "0").status, kaiza("audit", "show", "-n", "0").out) == (0, "")
    assert kaiza("audit", "show", "-n", "3", "5").status == 2
    assert kaiza("audit", "show", "-n", "-1").status == 2


def test_records_are_selected_by_the_first_characters_of_a_plan(kaiza, story, workspace):
    for plan_id in ("PLAN-1", "PLAN-10"):
        (workspace / "plans" / f"{plan_id}.md").write_text("")
    ambiguous = kaiza("audit", "show", "--plan", "PLAN")

    assert seqs(kaiza("audit", "show", "--json", "--plan", "PLAN-1").out) == [3, 4, 6]
    assert kaiza("audit", "show", "--json", "--plan", "PLAN-10").out == ""
    assert (ambiguous.status, ambiguous.out) == (1, "")
    assert "PLAN-10" in ambiguous.err
    (workspace / "plans/PLAN-10.md").unlink()
    assert seqs(kaiza("audit", "show", "--json", "--plan", "PLAN").out) == [3, 4, 6]
