"""Content rules: secrets, unfinished code and forbidden Rust in the lines that a change adds."""
