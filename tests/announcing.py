"""Stand-in for the log in tests of recovery: answers what it says of a transaction."""

from kaiza.store.changes.recovery import RecordedIntent


def intent_finder(changes, *, live="", is_open=True, is_applied=False):
    """Finds the intent of these changes under every id; its writer is dead unless `live` names a living process."""
    intent = RecordedIntent([change.as_record() for change in changes], live, is_open, is_applied)
    return lambda _txn: intent


def recover_changes(manager, changes, **recorded):
    """Recover the journals of a workspace whose log has the intent of these changes."""
    return manager.recover(intent_finder(changes, **recorded))
