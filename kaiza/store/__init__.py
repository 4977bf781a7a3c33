"""The disk; the only package that touches it."""
