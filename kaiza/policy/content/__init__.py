"""Content rules: secrets, stubs and unfinished code in what a change adds."""
