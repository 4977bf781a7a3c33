"""What people are told of a change that a crash interrupted, before anything has recovered it."""

import json
import os

import pytest
from boundary.test_recovery import lay_out, run_with_patch

from kaiza.store.changes.operation import ActiveOperation


@pytest.mark.parametrize("words", [("review",), ("diff",), ("undo",), ("session", "show")])
def test_a_change_that_was_interrupted_is_named_before_it_is_recovered(workspace, kaiza, monkeypatch, words):
    plan_hash = lay_out(workspace)
    run_with_patch(workspace, plan_hash, monkeypatch, ActiveOperation, "perform", lambda *_: os._exit(0))
    (session,) = json.loads(kaiza("session", "list", "--json").out)["sessions"]
    result = kaiza(*words, *([session["session_id"]] if words[0] == "session" else []))

    assert "A change was interrupted (apply_patch): " in result.err
    assert "files may be changed. The next call, or `kaiza undo --session " in result.err
