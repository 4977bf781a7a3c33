"""What a log says of a change, for tests of recovery that have no log."""

from kaiza.store.changes.recovery import RecordedIntent


def announcing(changes, *, live="", is_open=True, is_made=False):
    """A log that has the intent of these changes under any name, by a process that is gone unless `live` names one."""
    said = RecordedIntent([change.as_record() for change in changes], live, is_open, is_made)
    return lambda _txn: said


def recovered(committer, changes, **said):
    """What became of each journal."""
    return committer.recover(announcing(changes, **said))
