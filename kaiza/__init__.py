"""Kaiza: an MCP server that lets coding agents change files only under approved plans and records every call."""

__version__ = "0.2.0"
