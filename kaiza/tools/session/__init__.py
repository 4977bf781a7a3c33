"""Tools for the session, its report, the audit log and the server itself."""
