"""Disk primitives: small files, locks, fsync batches, atomic renames, the state directory and its key."""

__all__ = ["disk_reserve", "file_lock", "kaiza_dir", "process_liveness", "state_dir", "state_key"]
