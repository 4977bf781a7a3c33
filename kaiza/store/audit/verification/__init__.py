"""Verification of the whole audit log, and the acceptance of a damaged one."""
