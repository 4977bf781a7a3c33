"""The undo command."""
