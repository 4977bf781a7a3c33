"""Storage: everything Kaiza reads from or writes to disk. No other package opens files."""

__all__ = [
    "crash_recovery",
    "git",
    "human_decisions",
    "object_cleanup",
    "open_changes",
    "session_manifest",
    "settings_adoption",
    "tool_view",
    "workspace",
]
