"""Tools that describe the whole workspace. Agents find them by name: MCP's list of tools leaves them out."""
