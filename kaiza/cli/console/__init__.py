"""Shared parts of the command line: arguments, output, prompts, opening a workspace and reading its log."""
