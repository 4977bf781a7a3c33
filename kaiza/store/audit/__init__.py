"""The audit log on disk: appending, tailing, durability, checkpoints, reading and damage."""
