"""Files of a workspace: confined opening, tree walks and ignore rules."""
