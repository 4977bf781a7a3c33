"""Dialects: one protocol for calling tools per module."""
