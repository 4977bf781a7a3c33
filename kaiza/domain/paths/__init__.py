"""Paths inside a workspace: validated values, globs, gitignore patterns, protected and look-alike names."""
