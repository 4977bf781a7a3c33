"""The run log: one line for each request, to see how a server is used. It is not evidence; the audit log is."""

__all__ = ["run_log"]
