"""Tools that list, read, check and save plans."""
