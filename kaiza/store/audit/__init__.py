"""Audit log on disk: appending, tailing, durability, checkpoints, reading, damage."""
