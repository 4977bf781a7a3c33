"""Finds references in the text of files: links, imports, and paths in configuration.

The files are untrusted. Each is read in linear time, line by line or by patterns with limited backtracking. None is
executed, or parsed by a parser that a crafted file could slow down.
"""
