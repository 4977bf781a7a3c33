"""Things in the run log's way, and what must never get into it: no call fails, and nothing outside is touched."""

import json
import os
import subprocess

import pytest
from agents import Agent, several
from runs import COMPONENTS, EVENT, PLACE, latest_run, read_run, run_files
from scenes import bind, make_ready

from kaiza.store.runs.run_log import RunLog

OLD = "20200101T000000Z.00000000-0000-4000-8000-{:012d}.jsonl"


@pytest.fixture
def root(workspace):
    return bind(workspace)


def append(root, events=(EVENT,)):
    """Write events as one process does, from its first to its last."""
    log = RunLog([os.path.realpath(root)])
    try:
        return log.append(events)
    finally:
        log.close()


def put(path, kind, outside):
    """Put something else where a directory is expected."""
    path.parent.mkdir(parents=True, exist_ok=True)
    makers = {
        "link": lambda: path.symlink_to(outside, target_is_directory=True),
        "dangling link": lambda: path.symlink_to(outside / "nothing"),
        "FIFO": lambda: os.mkfifo(path),
        "file": lambda: path.write_text("a file"),
    }
    makers[kind]()


@pytest.mark.parametrize("part", COMPONENTS, ids=lambda part: part.name)
@pytest.mark.parametrize("kind", ["link", "dangling link", "FIFO", "file"])
def test_a_link_a_fifo_or_a_file_in_place_of_a_directory_writes_nothing(root, tmp_path, part, kind):
    outside = tmp_path / "outside"
    outside.mkdir()
    put(root / part, kind, outside)

    assert append(root) is False
    assert list(outside.iterdir()) == []
    assert (root / part).is_symlink() is ("link" in kind)


def test_a_call_succeeds_where_no_run_log_can_be_written(root, tmp_path):
    put(root / COMPONENTS[0], "link", tmp_path)
    (root / "a.txt").write_text("text\n")
    with several(root) as begin:
        agent = begin()
        code = agent.code("read_file", path="a.txt")

    assert code == "ok"
    assert not (tmp_path / "mcp_server").exists()


def test_a_link_to_the_latest_run_that_points_out_is_replaced(root, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("keep\n")
    (root / PLACE).mkdir(parents=True)
    (root / PLACE / ".latest").symlink_to(victim)
    append(root)

    assert victim.read_text() == "keep\n"
    assert os.readlink(root / PLACE / ".latest") == run_files(root)[0].name


def test_a_directory_in_place_of_the_link_costs_only_the_link(root):
    (root / PLACE / ".latest").mkdir(parents=True)
    append(root)

    assert [len(read_run(path)) for path in run_files(root)] == [1]
    assert [path.name for path in (root / PLACE).iterdir() if path.name.startswith(".latest.")] == []


def test_only_regular_files_with_the_name_of_a_run_are_removed(root, tmp_path):
    place = root / PLACE
    place.mkdir(parents=True)
    (tmp_path / "victim").write_text("keep\n")
    for number in range(1000):
        (place / f"alien-{number}.jsonl").write_text("")
    alien = [".jsonl", "x" + OLD.format(1), OLD.format(1) + ".bak", OLD.format(1).replace("0000-4", "000G-4")]
    for name in alien:
        (place / name).write_text("")
    (place / OLD.format(2)).mkdir()
    (place / OLD.format(3)).symlink_to(tmp_path / "victim")
    os.mkfifo(place / OLD.format(4))
    for number in range(10, 30):
        (place / OLD.format(number)).write_text("")
        os.utime(place / OLD.format(number), (number, number))
    append(root)
    left = {path.name for path in place.iterdir()}

    assert {f"alien-{number}.jsonl" for number in range(1000)} <= left
    assert {*alien, *(OLD.format(number) for number in (2, 3, 4))} <= left
    assert {OLD.format(number) for number in range(10, 30)} & left == {OLD.format(number) for number in range(26, 30)}
    assert (tmp_path / "victim").read_text() == "keep\n"


def test_a_full_disk_loses_whole_lines_only(small_disk):
    root = bind(make_ready(small_disk / "project"))
    log = RunLog([os.path.realpath(root)])
    events = [EVENT._replace(audit_seq=number) for number in range(400)]
    try:
        begun = log.append(events)
        subprocess.run(["mount", "-o", "remount,size=256k", small_disk], check=True)
        log.append([EVENT._replace(audit_seq=1000)])
        numbers = [line["metadata"]["auditSeq"] for line in latest_run(root)]
    finally:
        log.close()

    assert begun is True
    assert 10 < len(numbers) < 400
    assert numbers == [*range(len(numbers) - 1), 1000]


def test_bodies_and_absolute_paths_are_never_in_a_line(root):
    secret = "hunter2-correct-horse"
    agent = Agent(root)
    try:
        agent.call("write_file", path="a.txt", content=secret, plan_hash=secret)
        agent.call("read_file", path=f"{root}/{secret}")
        agent.call("read_file", **{secret: secret})
        agent.call("begin_session", role=secret, workspace_root=str(root))
        agent.door.ask(json.dumps({"jsonrpc": "1.0", "id": secret, "method": "a", "params": {secret: secret}}).encode())
    finally:
        agent.close()
    (path,) = run_files(root)
    written = path.read_text()

    assert len(read_run(path)) == 7
    assert secret not in written
    assert str(root) not in written
