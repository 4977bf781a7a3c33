"""Kaiza: the permission slip and the flight recorder for coding agents."""

__version__ = "0.1.0"
