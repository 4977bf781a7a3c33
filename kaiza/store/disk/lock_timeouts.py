"""How long each lock between processes is waited for, in seconds.

A call waits for the log's lock as long as the cap `audit_lock_ms` says.
"""

LOG = 5.0
"""For a command that verifies the log or accepts a damaged one. A record needs microseconds: it waits for one that
was stopped, or for another command."""

VERIFICATION = 5.0
"""For another process that verifies the same log: its result saves doing the same. One that was stopped costs this."""

IDENTITY = 5.0
"""For a process that binds the workspace, adopts it or changes its tokens: a few small files and their fsyncs."""

SEEN_PLANS = 5.0
"""For a process that writes what was seen of the plans: one small file."""

PATHS = 10.0
"""For a change of the same paths, which may copy and fsync files of hundreds of megabytes."""

RECOVERY = 10.0
"""For a recovery, which may make or undo several such changes."""

MANIFEST = 0.2
"""For another server's scan of the tree, in the background, again and again until this process ends. Its end may wait
this long."""

MANIFEST_DATABASE = 2.0
"""For a transaction of the manifest's database; a scan commits several times a second."""
