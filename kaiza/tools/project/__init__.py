"""Tools that describe the whole workspace. MCP's list of tools does not include them; they can be called by name."""
