"""Trust: what gives authority in a workspace, all of it kept outside the workspace."""
