"""Files of a workspace: confined opening, tree walks and ignore rules."""

__all__ = ["confined_root", "probe"]
