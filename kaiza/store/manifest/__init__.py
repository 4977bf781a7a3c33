"""Manifest of a workspace: what was there when each session began, in the state directory."""

__all__ = []
