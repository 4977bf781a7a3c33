"""Finds references in the text of files: links, imports, and paths in configuration.

The files are untrusted. Each is read in linear time, line by line or by patterns that cannot backtrack far; none is
executed or given to a parser that a crafted file could keep busy.
"""
