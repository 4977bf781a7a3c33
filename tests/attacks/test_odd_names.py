"""Names that hide others, break lines or look like Kaiza's own: each is listed once, as itself."""

import json
import os
import subprocess
import sys

import pytest
from outside_changes import begin

from kaiza.store import session_manifest
from kaiza.store.manifest import tree

NAMES = [
    b"a\nb", b"a\\nb", b"a\r", b"a\x7f", b"a\\x7f", b"a\\u007f", b"\xff", b"\\xff", b"\\udcff", b"\xc3\xbf",
    b"\xed\xb3\xbf",
    b"x" * 255, b"x" * 254, b"Readme", b"README", b"readme", "caf\u00e9".encode(), "cafe\u0301".encode(), b" ", b"  ",
    b"-rf",
    b"\\", b"\\\\", b"'", b'"', b"%", b"*", b"?", b"[a]", b"{}", b"~", b"#", b"\x01", b"\x1b[2J", "\u202e".encode(),
    "\u2028".encode(), b".kaiza-", b".kaiza-1-0", b".kaiza-00000000-0000-0000-0000-000000000000-0", b".kaiza.tmp",
    b"audit-log.torn-1", b"audit-log.damaged-1.jsonl", b"journal", b".kaiza~", b"kaiza.toml~", b".git~", b"git~1",
    b".", b"..", b"d/a\nb", b"d/\xff", b"d\n/x", b"d\xff/x", b"d\\xff/x", b"0", b"e/x", b"e0", b"e.x", b"e-x",
]  # fmt: skip
PLACES = [name for name in NAMES if name not in (b".", b"..")]


def report_of(app, session_id):
    (workspace,) = app.services.workspaces.values()
    return session_manifest.compare_session(workspace, session_id, "2026-01-01T00:00:00.000Z", "", 30)


def write(root, name, content=b"x\n"):
    path = os.path.join(os.fsencode(root), name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def listed(report):
    return sorted((os.fsencode(each.path), each.change) for each in report.ungoverned)


@pytest.fixture(params=[3, 1_000])
def _chunks(request, monkeypatch):
    monkeypatch.setattr(tree, "CHUNK_ENTRIES", request.param)


@pytest.mark.usefixtures("_chunks")
def test_every_odd_name_is_listed_once_as_what_happened_to_it(make_app, workspace):
    app = make_app(workspace)
    first = begin(app)
    for number, name in enumerate(PLACES):
        write(workspace, name, b"%d\n" % number)
    created = report_of(app, first)
    second = begin(app)
    unchanged = report_of(app, second)
    for number, name in enumerate(PLACES):
        write(workspace, name, b"%d more\n" % number)
    modified = report_of(app, second)
    third = begin(app)
    for name in PLACES:
        os.unlink(os.path.join(os.fsencode(workspace), name))
    deleted = [each for each in listed(report_of(app, third)) if not each[0].endswith(b"/")]

    assert listed(created) == sorted((name, "created") for name in PLACES)
    assert listed(unchanged) == []
    assert listed(modified) == sorted((name, "modified") for name in PLACES)
    assert {each for each in deleted if each[1] == "deleted"} == {(name, "deleted") for name in PLACES}


def shown_by(app, tool, member, **arguments):
    """A member of each entry that a tool lists, from all pages."""
    while True:
        output = app.call(tool, arguments).output
        yield from (item[member] for item in output["items"])
        if "nextCursor" not in output:
            return
        arguments["cursor"] = output["nextCursor"]


def review(root, session_id, form):
    command = [sys.executable, "-m", "kaiza", "review", "--session", session_id, form]
    done = subprocess.run(command, cwd=root, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def test_no_two_names_are_shown_alike_to_an_agent_or_a_person(make_app, workspace):
    app = make_app(workspace)
    session_id = begin(app)
    for name in PLACES:
        write(workspace, name)
    found = list(shown_by(app, "find_files", "path", pattern="**/*", include_ignored=True))
    names = list(shown_by(app, "list_directory", "name", path="."))
    answered = [each["path"] for each in app.call("end_session", {"session_id": session_id}).output["ungoverned"]]
    app.close()
    reviewed = [each["path"] for each in json.loads(review(workspace, session_id, "--json"))["ungoverned"]]
    markdown = review(workspace, session_id, "--markdown")
    printed = [line for line in markdown.splitlines() if line.startswith("- created: ")]

    for shown in (found, names, answered, reviewed, printed):
        assert len(set(shown)) == len(shown) > 20
        assert any(r"\xff" in each and r"\\" not in each for each in shown)
        assert any(r"\\xff" in each for each in shown)
