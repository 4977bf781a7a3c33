"""A plan's limit on bytes counts every byte written, by any operation."""

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
def plan_with_limit(begun, workspace):
    """Create a plan with a limit on bytes; its hash."""
    (workspace / "src").mkdir()
    (workspace / "src" / "a").write_text(OLD)
    return lambda count: plan(workspace, scope=WIDE, more=f"limits: {{bytes: {count}}}\n")


def bytes_used(app):
    return next(iter(app.services.workspaces.values())).audit_state.usage["PLAN-1"].bytes


@pytest.mark.parametrize("write", WRITES)
def test_a_write_beyond_the_byte_limit_is_refused_before_its_intent(begun, workspace, plan_with_limit, write):
    tool, arguments = WRITES[write]
    envelope = begun.call(tool, {**arguments, "plan_hash": plan_with_limit(len(NEW) - 1)}).envelope

    assert (envelope["invariant_id"], envelope["cause"]["limit"]) == ("PLAN_LIMIT_REACHED", "bytes")
    assert envelope["cause"]["asked"] == len(NEW)
    assert "intent" not in [record["kind"] for record in records(workspace)]
    assert [path.name for path in (workspace / "src").iterdir()] == ["a"]
    assert (workspace / "src" / "a").read_text() == OLD


def test_moving_and_deleting_use_no_bytes(begun, plan_with_limit):
    plan_hash = plan_with_limit(0)
    move = {"source": "src/a", "destination": "src/b", "expected_hash": sha(OLD.encode()), "plan_hash": plan_hash}
    delete = {"path": "src/b", "expected_hash": sha(OLD.encode()), "plan_hash": plan_hash}

    assert begun.call("move_file", move).envelope is None
    assert begun.call("delete_file", delete).envelope is None
    assert bytes_used(begun) == 0
