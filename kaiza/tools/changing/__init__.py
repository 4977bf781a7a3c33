"""Tools that change files, undo changes and run a plan's checks."""
