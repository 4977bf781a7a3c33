"""The tools that change files, on real files, without the boundary: what they propose and what they refuse."""

import base64
import hashlib
import json
import os
import tracemalloc

import pytest
from agents import sha
from tools.conftest import SCHEMAS, Reader

from kaiza.domain import errors
from kaiza.domain.caps import Caps
from kaiza.domain.paging import response_size
from kaiza.domain.paths.rel_path import parse
from kaiza.store.files.confined_root import ConfinedRoot
from kaiza.tools.changing import apply_patch, change_summary
from kaiza.tools.registry import AGENT_TOOLS

NO_HASH = "0" * 64
TOOLS = ("write_file", "edit_file", "apply_patch", "move_file", "delete_file")
MIB = 1 << 20


class Bench(Reader):
    """A workspace as the view of the tools that change it. It makes none of the changes that they propose."""

    def call(self, name, /, **arguments):
        arguments = {"plan_hash": NO_HASH, **arguments}
        io = SCHEMAS.load_tool_io(name)
        io.input.validate(arguments)
        answer = AGENT_TOOLS[name].run(AGENT_TOOLS[name].parse(arguments, self.root), self)
        io.output.validate({**answer.output, "request_id": "r"})
        assert response_size.response_bytes(answer.output) < self.caps.response_bytes - response_size.RESERVED_BYTES
        assert self.root not in str(answer.output)
        return answer.output, answer.changes

    def change(self, name, /, **arguments):
        output, (change,) = self.call(name, **arguments)
        for member in ("before_hash", "after_hash"):
            assert output.get(member) == getattr(change, member)
        assert output["path"] == str(change.path)
        assert output.get("source") == (change.source and str(change.source))
        counts = (output["size"], output["lines_added"], output["lines_removed"])
        assert counts == (change.size, change.lines_added, change.lines_removed)
        return output, change

    def mode_after(self, text):
        _, (change,) = self.call("apply_patch", patch=text)
        return change.mode

    def refused(self, name, /, **arguments):
        before = self.manifest()
        with pytest.raises(errors.SystemError) as raised:
            self.call(name, **arguments)
        assert self.manifest() == before
        return raised.value

    def code(self, name, /, **arguments):
        return self.refused(name, **arguments).error_code

    def requested_operations(self, name, /, **arguments):
        request = AGENT_TOOLS[name].parse({"plan_hash": NO_HASH, **arguments}, self.root)
        operations = AGENT_TOOLS[name].requested_operations(request, self)
        return [(operation.operation, *map(str, operation.paths), operation.edited) for operation in operations]

    def write(self, path, content, mode=0o644):
        super().write(path, content).chmod(mode)
        return sha(content)

    def manifest(self):
        return {path: path.is_file() and path.read_bytes() for path in self.path.rglob("*") if not path.is_fifo()}


@pytest.fixture
def bench(root):
    with ConfinedRoot(str(root)) as workspace:
        yield Bench(root, workspace)


ARGUMENTS = {
    "write_file": {"path": "f", "content": "b\n"},
    "edit_file": {"path": "f", "expected_hash": sha(b"a\n"), "edits": [{"old_text": "a", "new_text": "b"}]},
    "apply_patch": {"patch": "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"},
    "move_file": {"source": "f", "destination": "g", "expected_hash": sha(b"a\n")},
    "delete_file": {"path": "f", "expected_hash": sha(b"a\n")},
}
ARGUMENTS_FOR_EXISTING = {**ARGUMENTS, "write_file": {**ARGUMENTS["write_file"], "expected_hash": sha(b"a\n")}}


def test_a_new_file_is_proposed_with_its_hash_and_line_count(bench):
    output, change = bench.change("write_file", path="d/e/f", content="a\r\nb")

    assert (change.operation, change.content, change.mode) == ("create", b"a\r\nb", None)
    assert (output["after_hash"], output["size"], output["lines_added"]) == (sha(b"a\r\nb"), 4, 2)
    assert (output["unchanged"], output["dry_run"]) == (False, False)
    assert not {"before_hash", "diff", "source"} & output.keys()


def test_binary_content_is_accepted_as_base64(bench):
    content = bytes(range(256))
    _, change = bench.change("write_file", path="f", content=base64.b64encode(content).decode(), encoding="base64")

    assert change.content == content
    assert bench.code("write_file", path="f", content="a", encoding="base64") == "INVALID_INPUT_FORMAT"
    assert bench.code("write_file", path="f", content="YQ", encoding="base64") == "INVALID_INPUT_FORMAT"
    assert bench.code("write_file", path="f", content="\ud800") == "INVALID_INPUT_FORMAT"


def test_an_existing_file_is_replaced_only_if_its_hash_is_passed(bench):
    old = bench.write("f", b"a\nb\n", 0o755)
    created = bench.refused("write_file", path="f", content="a\n")
    stale = bench.refused("write_file", path="f", content="a\n", expected_hash=NO_HASH)
    output, change = bench.change("write_file", path="f", content="a\nc\nd\n", expected_hash=old)

    assert (created.error_code, created.cause["current_hash"]) == ("FILE_ALREADY_EXISTS", old)
    assert (stale.error_code, stale.cause["current_hash"]) == ("HASH_MISMATCH", old)
    assert (change.operation, change.before_hash, change.mode) == ("modify", old, None)
    assert (output["lines_added"], output["lines_removed"]) == (2, 1)


@pytest.mark.parametrize("expected_hash", [None, NO_HASH])
def test_writing_the_content_that_a_file_already_has_succeeds(bench, expected_hash):
    old = bench.write("f", b"a", 0o444)
    arguments = {"expected_hash": expected_hash} if expected_hash else {}
    output, changes = bench.call("write_file", path="f", content="a", **arguments)

    assert (output["unchanged"], output["after_hash"], changes) == (True, old, ())


def test_edits_return_a_diff(bench):
    old = bench.write("f", b"caf\xe9\r\nb\r\n")
    edits = [
        {"old_text": "b\r\n", "new_text": "c\r\n"},
        {"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}, "new_text": "C"},
    ]
    output, change = bench.change("edit_file", path="f", expected_hash=old, edits=edits)

    assert change.content == b"Caf\xe9\r\nc\r\n"
    assert (change.operation, output["lines_added"], output["diff_truncated"]) == ("modify", 2, False)
    assert output["diff"].endswith("-caf\\xe9\r\n-b\r\n+Caf\\xe9\r\n+c\r\n")


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        ({"old_text": "zzz", "new_text": "b"}, "PATCH_APPLY_FAILED"),
        ({"old_text": "a", "new_text": "a"}, "INVALID_INPUT_VALUE"),
        ({"old_text": "zzz", "new_text": "zzz"}, "INVALID_INPUT_VALUE"),
        ({"new_text": "a"}, "MISSING_REQUIRED_FIELD"),
        (
            {
                "old_text": "a",
                "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}},
                "new_text": "b",
            },
            "INVALID_INPUT_VALUE",
        ),
        (
            {"range": {"start": {"line": 7, "character": 0}, "end": {"line": 7, "character": 0}}, "new_text": "b"},
            "INVALID_INPUT_VALUE",
        ),
    ],
)
def test_an_edit_that_does_not_match_exactly_one_place_is_refused(bench, edit, code):
    old = bench.write("f", b"a\n")

    assert bench.code("edit_file", path="f", expected_hash=old, edits=[edit]) == code


PATCH = """\
diff --git a/changed b/changed
old mode 100644
new mode 100755
--- a/changed
+++ b/changed
@@ -1 +1,2 @@
-a
+b
+c
--- /dev/null
+++ b/d/new
@@ -0,0 +1 @@
+n
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-g
diff --git a/from b/to
rename from from
rename to to
diff --git a/from2 b/to2
rename from from2
rename to to2
--- a/from2
+++ b/to2
@@ -1 +1 @@
-2
+3
"""


def test_a_patch_proposes_a_change_for_every_file(bench):
    for name, content in (("changed", b"a\n"), ("gone", b"g\n"), ("from", b"\0"), ("from2", b"2\n")):
        bench.write(name, content)
    output, changes = bench.call("apply_patch", patch=PATCH, dry_run=True)

    assert [(change.operation, str(change.path), change.content, change.mode) for change in changes] == [
        ("modify", "changed", b"b\nc\n", 0o755),
        ("create", "d/new", b"n\n", None),
        ("delete", "gone", None, None),
        ("move", "to", None, None),
        ("move", "to2", b"3\n", None),
    ]
    assert [change.is_plain_move for change in changes] == [False, False, False, True, False]
    assert (output["files"], output["hunks"], output["lines_added"], output["lines_removed"]) == (5, 4, 4, 3)
    reapplied, same_changes = bench.call("apply_patch", patch=output["diff"])
    assert [change.as_record() for change in same_changes] == [change.as_record() for change in changes]
    assert reapplied["changes"] == [{**change, "dry_run": False} for change in output["changes"]]


def test_all_paths_and_operations_of_a_patch_are_known_before_it_runs(bench):
    bench.write("d/new", b"")
    request = apply_patch.parse({"patch": PATCH}, bench.root)

    assert {str(path) for path in request.paths} == {"changed", "d/new", "gone", "from", "to", "from2", "to2"}
    assert bench.requested_operations("apply_patch", patch=PATCH) == [
        ("modify", "changed", False),
        ("modify", "d/new", False),
        ("delete", "gone", False),
        ("move", "from", "to", False),
        ("move", "from2", "to2", True),
    ]


def test_a_patch_fails_whole_if_one_file_does_not_match(bench):
    for name, content in (("changed", b"a\n"), ("gone", b"other\n"), ("from", b"\0"), ("from2", b"2\n")):
        bench.write(name, content)
    error = bench.refused("apply_patch", patch=PATCH)

    assert (error.error_code, error.cause["path"]) == ("PATCH_APPLY_FAILED", "gone")


BUILD_DIFF = change_summary.build_diff
EDIT = "--- a/{0}\n+++ b/{0}\n@@ -1,2 +1,2 @@\n-a\n+b\n c\n"
CREATE = "--- /dev/null\n+++ b/{}\n@@ -0,0 +1 @@\n+{}\n"
DELETE = "diff --git a/{0} b/{0}\ndeleted file mode 100644\n--- a/{0}\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
MOVE = "diff --git a/{0} b/{0}2\nrename from {0}\nrename to {0}2\n"


@pytest.mark.parametrize(
    ("patch", "size"),
    [
        (EDIT.format("f") + EDIT.format("g"), 2 * 2 * 502),
        (CREATE.format("n", "x" * 999) + CREATE.format("m", "x" * 999), 2000),
        (MOVE.format("f") + MOVE.format("g"), 2 * 502),
        (DELETE.format("h") + EDIT.format("f"), 2 + 2 * 502),
    ],
)
def test_the_total_size_of_patched_files_is_bounded_before_any_is_read(bench, patch, size):
    for name in "fg":
        bench.write(name, b"a\nc\n" + b"x" * 498)
    bench.write("h", b"a\n")
    bench.caps = Caps(patched_bytes=size)
    bench.call("apply_patch", patch=patch, dry_run=True)
    bench.caps = Caps(patched_bytes=size - 1)
    bench.is_late = True
    refused = bench.refused("apply_patch", patch=patch, dry_run=True)

    assert refused.error_code == "CAP_EXCEEDED"
    assert refused.cause == {"cap": "patched_bytes", "limit": size - 1, "found": size}


def test_a_file_that_grows_before_it_is_read_counts_with_its_new_size(bench):
    bench.write("f", b"a\n")
    bench.caps = Caps(patched_bytes=1000)
    real_stat = bench.stat
    bench.stat = lambda path: (real_stat(path), bench.write("f", b"a\nc\n" + b"x" * 498))[0]
    with pytest.raises(errors.SystemError) as raised:
        bench.call("apply_patch", patch=EDIT.format("f"))

    assert raised.value.cause == {"cap": "patched_bytes", "limit": 1000, "found": 1004}


def test_a_dry_run_computes_no_more_diffs_than_fit_into_an_answer(bench, monkeypatch):
    diffs = []
    monkeypatch.setattr(
        change_summary, "build_diff", lambda *arguments: diffs.append(BUILD_DIFF(*arguments)) or diffs[-1]
    )
    line = b"x" * 60_000 + b"\n"
    for number in range(20):
        bench.write(f"f{number}", b"a\nc\n" + line)
    patch = "".join(EDIT.format(f"f{number}") for number in range(20))
    output, changes = bench.call("apply_patch", patch=patch, dry_run=True)

    assert (len(changes), output["diff_truncated"]) == (20, True)
    assert len(diffs) < 12


SHORT_LINES = 1_100_000


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("apply_patch", {"patch": EDIT.format("f")}),
        ("edit_file", {"path": "f", "edits": [{"old_text": "a\n", "new_text": "b\n"}]}),
        (
            "edit_file",
            {
                "path": "f",
                "edits": [
                    {
                        "range": {"start": {"line": at, "character": 0}, "end": {"line": at, "character": 1}},
                        "new_text": "b",
                    }
                    for at in (0, SHORT_LINES)
                ],
            },
        ),
    ],
)
def test_a_file_of_a_million_short_lines_is_changed_without_memory_for_each_line(bench, tool, arguments):
    content = b"a\nc\n" + b"z\n" * SHORT_LINES
    bench.write("f", content)
    expected = {} if tool == "apply_patch" else {"expected_hash": hashlib.sha256(content).hexdigest()}
    bench.call(tool, **arguments, **expected, dry_run=True)
    tracemalloc.start()
    output, _ = bench.call(tool, **arguments, **expected, dry_run=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    changed = output["diff"].count("\n-")

    assert peak < 6 * len(content)
    assert (output["lines_added"], output["lines_removed"]) == (changed - 1, changed - 1)
    assert changed - 1 == (len(arguments["edits"]) if tool == "edit_file" else 1)
    assert not output["diff_truncated"]


def test_a_text_that_is_not_in_a_file_of_a_million_short_lines_is_refused_without_memory_for_each_line(bench):
    content = b"z\n" * SHORT_LINES
    bench.write("f", content)
    edit = {
        "path": "f",
        "expected_hash": hashlib.sha256(content).hexdigest(),
        "edits": [{"old_text": "zz", "new_text": "y"}],
    }
    bench.refused("edit_file", **edit)
    tracemalloc.start()
    refused = bench.refused("edit_file", **edit)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (refused.error_code, refused.cause["why"]) == ("PATCH_APPLY_FAILED", "no_match")
    assert peak < 6 * len(content)


def test_replacing_a_file_of_a_million_short_lines_takes_no_memory_for_each_line(bench):
    content = b"z\n" * SHORT_LINES
    bench.write("f", content)
    write = {
        "path": "f",
        "content": "y\n" * 1000,
        "expected_hash": hashlib.sha256(content).hexdigest(),
        "dry_run": True,
    }
    bench.call("write_file", **write)
    tracemalloc.start()
    output, _ = bench.call("write_file", **write)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (output["lines_added"], output["lines_removed"], output["diff_truncated"]) == (1000, SHORT_LINES, True)
    assert peak < 6 * len(content)


def test_a_patch_past_its_deadline_reads_no_further_file(bench):
    bench.is_late = True

    assert bench.refused("apply_patch", patch=CREATE.format("n", "x")).cause["cap"] == "timeout"


def test_a_dry_run_holds_only_one_file_in_memory(bench):
    names = [f"f{number}" for number in range(16)]
    for name in names:
        bench.write(name, b"a\nc\n" + b"x" * MIB)
    patch = "".join(map(EDIT.format, names))
    bench.call("apply_patch", patch=patch, dry_run=True)
    tracemalloc.start()
    bench.call("apply_patch", patch=patch, dry_run=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 24 * MIB


@pytest.mark.parametrize(
    ("missing", "existing", "code"),
    [
        ("changed", None, "FILE_NOT_FOUND"),
        ("gone", None, "FILE_NOT_FOUND"),
        ("from", None, "FILE_NOT_FOUND"),
        (None, "d/new", "FILE_ALREADY_EXISTS"),
        (None, "to", "FILE_ALREADY_EXISTS"),
    ],
)
def test_a_patch_fails_if_a_file_is_missing_or_in_the_way(bench, missing, existing, code):
    for name, content in (("changed", b"a\n"), ("gone", b"g\n"), ("from", b"\0"), ("from2", b"2\n")):
        if name != missing:
            bench.write(name, content)
    if existing:
        bench.write(existing, b"x")

    assert bench.code("apply_patch", patch=PATCH) == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "PATCH_INVALID"),
        ("prose\n", "PATCH_INVALID"),
        ("--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-a\n+b\n", "PATH_TRAVERSAL_BLOCKED"),
        ("--- a//etc/x\n+++ b//etc/x\n@@ -1 +1 @@\n-a\n+b\n", "OUTSIDE_WORKSPACE"),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+" + "é" * 270_000 + "\n", "INVALID_INPUT_VALUE"),
    ],
)
def test_a_malformed_patch_is_refused_with_its_code(bench, text, code):
    assert bench.code("apply_patch", patch=text) == code


def test_the_execute_bits_follow_the_read_bits(bench):
    flip = "diff --git a/f b/f\nold mode {}\nnew mode {}\n"
    bench.write("f", b"a", 0o640)
    assert bench.mode_after(flip.format("100644", "100755")) == 0o750
    bench.write("f", b"a", 0o700)
    assert bench.mode_after(flip.format("100755", "100644")) == 0o600


def test_a_patch_creates_a_file_with_the_default_mode_or_executable(bench):
    new = "diff --git a/n b/n\nnew file mode {}\n"

    assert bench.mode_after(new.format("100644")) is None
    assert bench.mode_after(new.format("100755")) == 0o755


def test_a_file_is_moved_only_to_an_unused_path(bench):
    old = bench.write("f", b"a\n")
    output, change = bench.change("move_file", source="f", destination="d/g", expected_hash=old)

    assert (change.operation, change.is_plain_move, output["source"], output["path"]) == ("move", True, "f", "d/g")
    assert (output["before_hash"], output["after_hash"], output["size"], output["lines_added"]) == (old, old, 2, 0)
    bench.write("d/g", b"x")
    assert bench.code("move_file", source="f", destination="d/g", expected_hash=old) == "FILE_ALREADY_EXISTS"
    assert bench.code("move_file", source="f", destination="f", expected_hash=old) == "INVALID_INPUT_VALUE"
    assert bench.code("move_file", source="f", destination="f/g", expected_hash=old) == "FILE_WRITE_FAILED"


def test_a_file_is_deleted_if_its_hash_matches(bench):
    old = bench.write("f", b"a\nb")
    output, change = bench.change("delete_file", path="f", expected_hash=old)

    assert (change.operation, change.before_hash, change.after_hash) == ("delete", old, None)
    assert (output["lines_removed"], output["size"]) == (2, 0)


@pytest.mark.parametrize("tool", [name for name in TOOLS if name != "apply_patch"])
def test_a_stale_hash_changes_nothing(bench, tool):
    current = bench.write("f", b"changed since\n")
    error = bench.refused(tool, **ARGUMENTS_FOR_EXISTING[tool])

    assert (error.error_code, error.cause["current_hash"]) == ("HASH_MISMATCH", current)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_missing_file_is_not_found(bench, tool):
    assert bench.code(tool, **ARGUMENTS_FOR_EXISTING[tool]) == "FILE_NOT_FOUND"


@pytest.mark.parametrize("tool", TOOLS)
def test_devices_and_directories_are_refused_without_waiting(bench, tool):
    os.mkfifo(bench.path / "f")
    assert bench.code(tool, **ARGUMENTS_FOR_EXISTING[tool]) == "FILE_WRITE_FAILED"
    (bench.path / "f").unlink()
    (bench.path / "f").mkdir()
    assert bench.code(tool, **ARGUMENTS_FOR_EXISTING[tool]) == "FILE_WRITE_FAILED"


@pytest.mark.parametrize("tool", TOOLS)
def test_a_file_with_hard_links_is_not_changed(bench, tool):
    bench.write("f", b"a\n")
    os.link(bench.path / "f", bench.path / "other")

    assert bench.refused(tool, **ARGUMENTS_FOR_EXISTING[tool]).cause["why"] == "hard_link"


@pytest.mark.parametrize("tool", TOOLS)
def test_changes_do_not_follow_symbolic_links(bench, tool):
    bench.write("real", b"a\n")
    (bench.path / "f").symlink_to("real")
    error = bench.refused(tool, **ARGUMENTS_FOR_EXISTING[tool])

    assert (error.error_code, error.cause["real_path"]) == ("INVALID_PATH", "real")
    (bench.path / "f").unlink()
    (bench.path / "d").mkdir()
    (bench.path / "f").symlink_to("d")
    assert bench.code(tool, **ARGUMENTS_FOR_EXISTING[tool]) == "INVALID_PATH"
    (bench.path / "f").unlink()
    (bench.path / "f").symlink_to("/etc/hostname")
    assert bench.code(tool, **ARGUMENTS_FOR_EXISTING[tool]) == "OUTSIDE_WORKSPACE"


def test_no_file_is_created_through_a_symbolic_link(bench):
    old = bench.write("real/f", b"a\n")
    (bench.path / "through").symlink_to("real")
    (bench.path / "nowhere").symlink_to("missing")
    new = "--- /dev/null\n+++ b/through/x/y\n@@ -0,0 +1 @@\n+a\n"

    error = bench.refused("write_file", path="through/x/y", content="a")
    assert (error.error_code, error.cause["real_path"]) == ("INVALID_PATH", "real/x/y")
    assert bench.code("apply_patch", patch=new) == "INVALID_PATH"
    assert bench.code("move_file", source="real/f", destination="through/g", expected_hash=old) == "INVALID_PATH"
    assert bench.code("write_file", path="nowhere", content="a") == "INVALID_PATH"
    assert bench.code("write_file", path="nowhere/x", content="a") == "INVALID_PATH"
    assert bench.code("write_file", path="real/f/x", content="a") == "FILE_WRITE_FAILED"


@pytest.mark.parametrize("tool", ["write_file", "edit_file", "apply_patch"])
def test_a_read_only_file_is_not_overwritten(bench, tool):
    bench.write("f", b"a\n", 0o444)

    assert bench.code(tool, **ARGUMENTS_FOR_EXISTING[tool]) == "FILE_WRITE_FAILED"


@pytest.mark.parametrize("tool", TOOLS)
def test_the_hash_of_an_unreadable_file_is_not_revealed(bench, tool):
    old = bench.write(".env", b"a\n")
    text = json.dumps(ARGUMENTS_FOR_EXISTING[tool])
    arguments = json.loads(text.replace('"f"', '".env"').replace("/f\\n", "/.env\\n"))
    error = bench.refused(tool, **arguments)

    assert error.error_code == "POLICY_VIOLATION"
    assert old not in str(error.cause)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_dry_run_proposes_the_same_change_and_returns_its_diff(bench, tool):
    bench.write("f", b"a\n")
    real_output, changes = bench.call(tool, **ARGUMENTS_FOR_EXISTING[tool])
    output, dry_changes = bench.call(tool, **ARGUMENTS_FOR_EXISTING[tool], dry_run=True)

    assert output["dry_run"] is True
    assert dry_changes == changes
    assert output["diff"].startswith("diff --git a/f b/")
    for name in real_output.keys() - {"dry_run", "summary", "changes"}:
        assert output[name] == real_output[name]


def test_a_long_diff_is_truncated_to_the_size_of_a_response(bench):
    line = "\x01" * 99 + "\n"
    output, _ = bench.call("write_file", path="f", content=line * 1200, dry_run=True)

    assert output["diff_truncated"]
    assert output["diff"].endswith("\n")
    assert output["lines_added"] == 1200


@pytest.mark.parametrize(
    ("arguments", "existing", "operation"),
    [
        ({"content": "b"}, None, "create"),
        ({"content": "b"}, b"a", "modify"),
        ({"content": "a"}, b"a", "create"),
        ({"content": "a", "expected_hash": NO_HASH}, b"a", "modify"),
        ({"content": "b", "expected_hash": NO_HASH}, b"a", "modify"),
        ({"content": "b", "expected_hash": NO_HASH}, None, "create"),
    ],
)
def test_a_write_requests_a_creation_or_a_modification_depending_on_the_file(bench, arguments, existing, operation):
    if existing is not None:
        bench.write("f", existing)

    assert bench.requested_operations("write_file", path="f", **arguments) == [(operation, "f", False)]


def test_move_delete_and_edit_request_their_own_operation(bench):
    delete, move, edit = (
        bench.requested_operations(name, **ARGUMENTS[name]) for name in ("delete_file", "move_file", "edit_file")
    )

    assert (delete, move, edit) == ([("delete", "f", False)], [("move", "f", "g", False)], [("modify", "f", False)])


@pytest.mark.parametrize("tool", ["move_file", "delete_file"])
def test_a_large_file_is_hashed_without_holding_it_in_memory(bench, tool):
    with (bench.path / "f").open("wb") as file:
        file.truncate(100 * MIB)
    digest = hashlib.sha256()
    for _ in range(100):
        digest.update(bytes(MIB))
    tracemalloc.start()
    bench.call(tool, **{**ARGUMENTS_FOR_EXISTING[tool], "expected_hash": digest.hexdigest()})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 4 * MIB


@pytest.mark.parametrize("tool", ["edit_file", "apply_patch"])
def test_a_file_above_the_size_cap_is_not_edited(bench, tool):
    bench.caps = Caps(hashed_bytes=1000)
    old = bench.write("f", b"a\n" * 501)
    arguments = {**ARGUMENTS[tool], **({"expected_hash": old} if tool == "edit_file" else {})}

    assert bench.code(tool, **arguments) == "CAP_EXCEEDED"


def test_a_file_above_the_size_cap_can_be_replaced(bench):
    bench.caps = Caps(hashed_bytes=1000)
    old = bench.write("f", b"a\n" * 501)
    output, change = bench.change("write_file", path="f", content="b\n", expected_hash=old, dry_run=True)

    assert (change.lines_added, change.lines_removed, output["diff_truncated"]) == (1, 501, True)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_call_past_its_deadline_stops_reading(bench, tool):
    bench.write("f", b"a\n")
    bench.is_late = True

    assert bench.code(tool, **ARGUMENTS_FOR_EXISTING[tool]) == "CAP_EXCEEDED"


def test_paths_are_resolved_against_the_root_of_the_session(bench):
    bench.write("f", b"a\n")
    _, change = bench.change("write_file", path=f"{bench.root}/g", content="")

    assert change.path == parse("g")
    assert bench.code("write_file", path="/elsewhere/g", content="") == "OUTSIDE_WORKSPACE"
    assert bench.code("write_file", path="../g", content="") == "PATH_TRAVERSAL_BLOCKED"
    assert bench.code("write_file", path=".", content="") == "FILE_WRITE_FAILED"
