"""Atomic changes of several files: preflight, write-ahead journal, pre-images, transaction, recovery."""

__all__ = ["directory_handles", "journal", "staging"]
