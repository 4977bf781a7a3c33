"""Runs the verify commands of a plan: in a sandbox, or with a comparison of the governing files before and after."""

__all__ = ["check_runner", "guarded_paths", "sandbox"]
