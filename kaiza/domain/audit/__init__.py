"""Audit records: canonical JSON, the hash chain, redaction, and the state projected from records."""
