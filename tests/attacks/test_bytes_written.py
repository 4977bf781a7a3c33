"""A limit on bytes counts every byte that is written, by whichever operation."""

import pytest
from agents import WIDE, plan, sha
from scenes import records

OLD = "".join(f"line {number}\n" for number in range(50))
NEW = OLD + "x" * 100 + "\n"
TAIL = "@@ -48,3 +48,4 @@\n line 47\n line 48\n line 49\n+" + "x" * 100 + "\n"
RENAMED = (
    "diff --git a/src/a b/src/b\nsimilarity index 80%\nrename from src/a\nrename to src/b\n--- a/src/a\n+++ b/src/b\n"
) + TAIL
WRITES = {
    "create": ("write_file", {"path": "src/c", "content": NEW}),
    "modify": ("write_file", {"path": "src/a", "content": NEW, "expected_hash": sha(OLD.encode())}),
    "edit": (
        "edit_file",
        {
            "path": "src/a",
            "expected_hash": sha(OLD.encode()),
            "edits": [{"old_text": "line 49\n", "new_text": "line 49\n" + "x" * 100 + "\n"}],
        },
    ),
    "patch": ("apply_patch", {"patch": "--- a/src/a\n+++ b/src/a\n" + TAIL}),
    "rename and edit": ("apply_patch", {"patch": RENAMED}),
}


@pytest.fixture
def limited(begun, workspace):
    """Makes a plan that allows so many bytes."""
    (workspace / "src").mkdir()
    (workspace / "src" / "a").write_text(OLD)
    return lambda count: plan(workspace, scope=WIDE, more=f"limits: {{bytes: {count}}}\n")


def used(app):
    return next(iter(app.services.workspaces.values())).audit_state.usage["PLAN-1"].bytes


@pytest.mark.parametrize("write", WRITES)
def test_a_write_beyond_the_byte_limit_is_refused_before_its_intent(begun, workspace, limited, write):
    tool, asked = WRITES[write]
    told = begun.call(tool, {**asked, "plan_hash": limited(len(NEW) - 1)}).envelope

    assert (told["invariant_id"], told["cause"]["limit"]) == ("PLAN_LIMIT_REACHED", "bytes")
    assert told["cause"]["asked"] == len(NEW)
    assert "intent" not in [one["kind"] for one in records(workspace)]
    assert [path.name for path in (workspace / "src").iterdir()] == ["a"]
    assert (workspace / "src" / "a").read_text() == OLD


@pytest.mark.parametrize("write", WRITES)
def test_a_write_within_the_byte_limit_adds_its_size_to_the_usage(begun, workspace, limited, write):
    tool, asked = WRITES[write]
    allowed = limited(len(NEW) + 1)
    first = begun.call(tool, {**asked, "plan_hash": allowed}).envelope
    again = begun.call("write_file", {"path": "src/more", "content": "xx", "plan_hash": allowed}).envelope

    assert first is None
    assert used(begun) == len(NEW)
    assert (again["invariant_id"], again["cause"]["used"]) == ("PLAN_LIMIT_REACHED", len(NEW))


def test_moving_and_deleting_use_no_bytes(begun, limited):
    allowed = limited(0)
    moved = {"source": "src/a", "destination": "src/b", "expected_hash": sha(OLD.encode()), "plan_hash": allowed}
    gone = {"path": "src/b", "expected_hash": sha(OLD.encode()), "plan_hash": allowed}

    assert begun.call("move_file", moved).envelope is None
    assert begun.call("delete_file", gone).envelope is None
    assert used(begun) == 0
