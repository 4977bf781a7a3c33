"""Disk primitives: locks, fsync batches, atomic renames, file metadata, the state directory and its key."""
