"""Audit log on disk: appending, tailing, durability, checkpoints, reading, damage."""

__all__ = [
    "checkpoint",
    "damage_mark",
    "determinism",
    "log_file",
    "reader",
    "record_search",
    "verification.accept",
    "verification.verify",
]
