"""Dialects: how tool calls and their outcomes are encoded for a client."""
