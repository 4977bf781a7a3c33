"""Shared parts of the command line: arguments, output, prompts and opening a workspace."""
