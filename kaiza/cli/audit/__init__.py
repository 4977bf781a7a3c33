"""Commands on the audit log."""
