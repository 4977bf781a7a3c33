"""Audit log on disk: appending, tailing, durability, checkpoints, reading, damage."""

__all__ = [
    "checkpoint",
    "damage_mark",
    "determinism",
    "log_file",
    "reader",
    "verification.accept",
    "verification.verify",
]
