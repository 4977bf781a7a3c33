"""`kaiza audit verify` and the one-file verifier agree on verdict and exit status, whatever became of a workspace."""

import importlib.util
import json
import os
import random
import shutil
import sys
from pathlib import Path

import pytest
from logs import LONG, chained, head_of, write_checkpoint
from scenes import bind

from kaiza.cli import dispatch
from kaiza.store.disk import state_dir

TOOL = Path(__file__).parents[3] / "tools" / "verify_audit_log.py"
SEEDS = 1000 if LONG else 250
BATCH = 50


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("verify_audit_log", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LINES = chained(6)
OTHERS = chained(6, tool_name="list_directory")
ODD = (
    b"\n",
    b"\0" * 20,
    b"\0" * 600,
    b"\xef\xbb\xbf",
    b"\r\n",
    b"}",
    b"{}\n",
    b"1e9",
    b'{"seq":99999999999999999999}\n',
)


def double(pick, lines):
    lines.insert(pick.randrange(len(lines) + 1), pick.choice(LINES))


def swap(pick, lines):
    pick.shuffle(lines)


def drop(pick, lines):
    del lines[: pick.randrange(3)], lines[pick.randrange(len(lines) + 1) :]


def tear(pick, lines):
    content = b"".join(lines)
    lines[:] = [content[: pick.randrange(len(content) + 1)]]


def splice(pick, lines):
    content = b"".join(lines)
    at = pick.randrange(len(content) + 1)
    lines[:] = [content[:at] + pick.choice(ODD) + content[at + pick.choice((0, 1, 700)) :]]


def zero_the_end(pick, lines):
    content = b"".join(lines)
    at = pick.randrange(len(content) + 1)
    lines[:] = [content[:at] + bytes(len(content) - at)]


def carriage_returns(_pick, lines):
    lines[:] = [line.replace(b"\n", b"\r\n") for line in lines]


def byte_order_mark(_pick, lines):
    lines.insert(0, b"\xef\xbb\xbf")


def huge_number(pick, lines):
    at = pick.randrange(len(lines) or 1)
    lines[at : at + 1] = [line.replace(b'"seq":', b'"seq":1' + b"0" * 30) for line in lines[at : at + 1]]


def other_log(_pick, lines):
    lines[:] = OTHERS


def more(_pick, lines):
    lines[:] = chained(9)


def empty(_pick, lines):
    lines.clear()


EDITS = (double, swap, drop, tear, splice, zero_the_end, carriage_returns, byte_order_mark, huge_number, other_log,
         more, empty)  # fmt: skip
PLACES = ("file",) * 12 + ("missing",) * 4 + ("directory", "link", "fifo", "no audit")


def put_log(root, place, content):
    """Put the log, or something else in its place."""
    audit = root / "audit"
    path = audit / "audit-log.jsonl"
    audit.mkdir()
    if place == "file":
        path.write_bytes(content)
    elif place == "directory":
        path.mkdir()
    elif place == "link":
        (root / "elsewhere").write_bytes(content)
        path.symlink_to(root / "elsewhere")
    elif place == "fifo":
        os.mkfifo(path)
    elif place == "no audit":
        audit.rmdir()


def head_for(pick):
    """A saved head: of this log, of one that is ahead, of another log, or none."""
    kind = pick.choice(("none", "none", "right", "ahead", "wrong"))
    lines = {"right": LINES, "ahead": chained(12), "wrong": OTHERS}.get(kind)
    if lines is None:
        return None
    head = head_of(lines[: pick.randrange(8, 12) if kind == "ahead" else pick.randrange(1, len(lines) + 1)])
    return f"{head.seq}:{head.entry_hash}"


def make_workspace(pick, root):
    """A workspace with or without a bound id, `.kaiza`, a checkpoint; the words for both verifiers."""
    root.mkdir()
    lines = list(LINES)
    for edit in pick.choices(EDITS, k=pick.choice((0, 1, 1, 2))):
        edit(pick, lines)
    put_log(root, pick.choice(PLACES), b"".join(lines))
    has_state = pick.random() < 0.7
    if has_state:
        if pick.random() < 0.7:
            bind(root)
        anchored = pick.choice((None, LINES, LINES[:2], chained(9), OTHERS))
        write_checkpoint(root, head_of(anchored) if anchored else None)
    if pick.random() < 0.4:
        shutil.rmtree(root / ".kaiza", ignore_errors=True)
    head = head_for(pick)
    return ["--head", head] if head else [], ["--state", str(state_dir.path_of(str(root)))] if has_state else []


@pytest.fixture
def verify_twice(tool, capsys, monkeypatch):
    """Exit status and verdict by `kaiza audit verify` and by the one-file verifier."""

    def run(root, head, state):
        results = []
        monkeypatch.setattr(sys, "argv", ["verify_audit_log.py", str(root / "audit/audit-log.jsonl"), *head, *state])
        for main in (lambda: dispatch.main(["audit", "verify", "--json", "--workspace", str(root), *head]), tool.main):
            try:
                status = main()
            except SystemExit as ended:
                status = ended.code
            out = capsys.readouterr().out
            found = json.loads(out) if out and status < 2 else {}
            results.append((status, {name: found[name] for name in found if name not in ("summary", "states")}))
        return results

    return run


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_both_verifiers_agree_on_any_log_in_any_workspace(tmp_path, verify_twice, first):
    seen = set()
    for seed in range(first, first + BATCH):
        root = tmp_path / f"w{seed}"
        head, state = make_workspace(random.Random(seed), root)
        ours, theirs = verify_twice(root, head, state)
        seen.add(ours[0])

        assert ours == theirs, f"seed {seed}, {head}, {state}"

    assert seen == {0, 1, 3}


@pytest.mark.parametrize(
    ("anchored", "head", "expected"),
    [
        (False, False, (0, "intact")),
        (False, True, (1, "cut_off")),
        (True, False, (1, "missing")),
        (True, True, (1, "missing")),
    ],
)
@pytest.mark.parametrize("was_bound", [False, True])
def test_a_workspace_without_a_log_is_compared_with_every_checkpoint(
    tmp_path, verify_twice, anchored, head, expected, was_bound
):
    root = tmp_path / "project"
    (root / "audit").mkdir(parents=True)
    if was_bound:
        bind(root)
        shutil.rmtree(root / ".kaiza")
    write_checkpoint(root, head_of(LINES) if anchored else None)
    saved = ["--head", f"6:{head_of(LINES).entry_hash}"] if head else []
    state = state_dir.path_of(str(root))
    ours, theirs = verify_twice(root, saved, ["--state", str(state)])

    assert ours == theirs
    assert (ours[0], ours[1]["verdict"]) == expected
    assert not (state / "damage.json").exists()


def test_a_new_workspace_at_an_old_path_has_nothing_to_accept_and_its_first_call_begins_a_log(tmp_path, capsys):
    root = tmp_path / "project"
    for name in ("audit", "plans"):
        (root / name).mkdir(parents=True)
    write_checkpoint(root, head_of(LINES))
    verified = dispatch.main(["audit", "verify", "--workspace", str(root)])
    said = capsys.readouterr()
    accepted = dispatch.main(["audit", "accept", "--workspace", str(root), "--reason", "made anew"])
    frozen = dispatch.main(["freeze", "wait", "--workspace", str(root)])

    assert (verified, accepted, frozen) == (1, 1, 0)
    assert "Missing" in said.out
    assert "counts as a new one" in said.err
    assert dispatch.main(["audit", "verify", "--workspace", str(root)]) == 0
