"""Commands on sessions, locks and freezes."""
