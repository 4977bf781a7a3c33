"""Atomic changes of several files: preflight, write-ahead journal, pre-images, transaction, recovery."""
