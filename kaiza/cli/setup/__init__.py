"""The init command."""
