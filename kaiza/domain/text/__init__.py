"""Text: lines and excerpts, search, edits, line diffs and unified diffs."""
