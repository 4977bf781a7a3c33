"""The run log: one line for each request, for looking at how a server is used. It is no evidence; the audit log is."""
