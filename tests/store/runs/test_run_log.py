"""The run log of one process: its place, its lines, and how many runs are kept."""

import os
import re
import shutil
import uuid
from pathlib import Path

import pytest
from runs import COMPONENTS, EVENT, FAILED, MEMBERS, METADATA, PLACE, latest_run, read_run, run_files
from scenes import bind, make_ready

from kaiza.store.runs import run_log
from kaiza.store.runs.run_log import RunLog

NAMESPACE = uuid.UUID("c1fd1c20-77b7-4f73-b39c-8ed2dd2f2d8c")
RUN_NAME = re.compile(r"\d{8}T\d{6}Z\.[0-9a-f-]{36}\.jsonl")


@pytest.fixture
def root(workspace):
    return bind(workspace)


@pytest.fixture
def open_log(root):
    """Opens run logs, in the workspace or in other roots; they are closed at the end."""
    opened = []

    def open_one(*roots, **options):
        opened.append(RunLog([os.path.realpath(each) for each in roots or (root,)], **options))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


@pytest.mark.rows("S3-33", "S3-34", "S3-35", "S3-36", "S3-37", "S3-38", "S3-39", "S3-40", "S3-41")
def test_a_line_has_exactly_the_members_of_the_specification(open_log, root):
    open_log().append([EVENT, FAILED])
    ok, failed = latest_run(root)

    assert list(ok) == list(failed) == MEMBERS
    assert list(ok["metadata"]) == METADATA
    assert (ok["ts"], ok["transport"], ok["route"]) == ("2026-11-18T11:06:40.250Z", "stdio", "tools/call")
    assert (ok["status"], ok["error"], ok["durationMs"], ok["metadata"]["auditSeq"]) == ("ok", None, 12.3, 7)
    assert (ok["metadata"]["schemaVersion"], ok["metadata"]["deterministic"]) == ("0.1.0", False)
    assert failed["status"] == "error"
    assert failed["error"].keys() == {"code", "message", "details"}
    assert (failed["error"]["code"], failed["error"]["details"]) == ("MISSING_REQUIRED_FIELD", {"missing": ["path"]})


@pytest.mark.rows("S3-34")
def test_every_request_has_ids_of_its_own(open_log, root):
    open_log().append([EVENT, EVENT])
    ids = [line[name] for line in latest_run(root) for name in ("requestId", "traceId", "spanId")]

    assert len(set(ids)) == 6
    assert all(str(uuid.UUID(each)) == each for each in ids)


@pytest.mark.rows("S3-31", "S3-32")
def test_a_run_has_a_private_file_and_a_relative_link_to_the_newest(open_log, root):
    open_log().append([EVENT])
    (first,) = run_files(root)
    open_log().append([EVENT])
    target = os.readlink(root / PLACE / ".latest")

    assert RUN_NAME.fullmatch(first.name)
    assert RUN_NAME.fullmatch(target)
    assert {first.name, target} == {path.name for path in run_files(root)}
    assert target != first.name
    assert first.stat().st_mode & 0o777 == 0o600
    assert all((root / part).stat().st_mode & 0o777 == 0o700 for part in COMPONENTS)
    assert (root / ".kaiza" / ".gitignore").read_text() == "*\n"
    assert all(line["runId"] in target for line in latest_run(root))


def test_long_strings_are_cut(open_log, root):
    long = "x" * 100_000
    failed = FAILED._replace(method=long, route=long, tool_id=long, agent_id=long)
    open_log().append([failed._replace(error=failed.error._replace(details={"missing": [long]}))])
    (line,) = latest_run(root)

    assert [line[name] for name in ("method", "route", "agentId")] == ["x" * 200] * 3
    assert line["metadata"]["toolId"] == line["error"]["details"]["missing"][0] == "x" * 200


def test_the_last_five_runs_are_kept(open_log, root):
    for age in range(8, 0, -1):
        log = open_log()
        log.append([EVENT])
        log.close()
        newest = root / PLACE / os.readlink(root / PLACE / ".latest")
        os.utime(newest, (age, 1_000_000 - age))
    kept = {path.stat().st_mtime for path in run_files(root)}

    assert kept == {1_000_000 - age for age in (1, 2, 3, 4, 5)}


def test_runs_whose_process_is_alive_are_kept(open_log, root):
    for _ in range(8):
        open_log().append([EVENT])

    assert len(run_files(root)) == 8


def test_a_full_file_ends_and_another_begins(open_log, root, monkeypatch):
    monkeypatch.setattr(run_log, "MAX_FILE_BYTES", 2000)
    log = open_log()
    for _ in range(7):
        log.append([EVENT])
    files = run_files(root)

    assert sorted(len(read_run(path)) for path in files) == [1, 3, 3]
    assert all(path.stat().st_size <= 2000 for path in files)
    assert all(line["runId"] in path.name for path in files for line in read_run(path))


def test_a_run_of_many_files_keeps_the_last_five(open_log, root, monkeypatch):
    monkeypatch.setattr(run_log, "MAX_FILE_BYTES", 2000)
    log = open_log()
    for number in range(30):
        log.append([EVENT._replace(audit_seq=number)])

    assert len(run_files(root)) == 5
    assert latest_run(root)[-1]["metadata"]["auditSeq"] == 29


def test_another_file_begins_where_the_directory_was_deleted(open_log, root):
    log = open_log()
    log.append([EVENT])
    shutil.rmtree(root / ".kaiza" / "runs")
    log.append([EVENT._replace(audit_seq=8)])

    assert [line["metadata"]["auditSeq"] for line in latest_run(root)] == [8]


@pytest.mark.rows("S3-7", "S3-41")
def test_a_deterministic_run_writes_the_same_lines_each_time(tmp_path, open_log):
    roots = [bind(make_ready(tmp_path / name)) for name in ("one", "other")]
    for root in roots:
        open_log(root, is_deterministic=True).append([EVENT, FAILED._replace(at=5.0, seconds=2.0)])
    first, second = latest_run(roots[0])

    assert [path.name for path in run_files(roots[0])] == [path.name for path in run_files(roots[1])]
    assert (first["ts"], second["ts"]) == ("1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00.001Z")
    assert first["durationMs"] == second["durationMs"] == 0
    assert first["metadata"]["deterministic"] is True
    assert first["runId"] == str(uuid.uuid5(NAMESPACE, "run:0"))
    assert first | {"requestId": 0, "traceId": 0, "spanId": 0} == latest_run(roots[1])[0] | {
        "requestId": 0,
        "traceId": 0,
        "spanId": 0,
    }


def test_deterministic_runs_of_one_workspace_have_files_of_their_own(open_log, root):
    for _ in range(3):
        open_log(is_deterministic=True).append([EVENT])

    assert len(run_files(root)) == 3


def test_nothing_is_written_in_a_new_or_foreign_workspace(open_log, tmp_path):
    new, foreign = make_ready(tmp_path / "new"), bind(make_ready(tmp_path / "original")).rename(tmp_path / "moved")
    before = sorted(tmp_path.rglob("*"))

    assert open_log(new, foreign).append([EVENT]) is False
    assert sorted(tmp_path.rglob("*")) == before


def test_a_run_begins_once_a_workspace_is_bound(open_log, tmp_path):
    root = make_ready(tmp_path / "late")
    log = open_log(root)
    refused = log.append([EVENT])
    bind(root)
    accepted = log.append([EVENT])

    assert (refused, accepted) == (False, True)
    assert len(latest_run(root)) == 1


def test_the_first_workspace_that_is_ready_has_the_run_log(open_log, tmp_path, root):
    new, other = make_ready(tmp_path / "new"), bind(make_ready(tmp_path / "other"))
    open_log(new, root, other).append([EVENT])

    assert len(run_files(root)) == 1
    assert not Path(other, PLACE).exists()
