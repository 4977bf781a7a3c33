"""Configuration: settings, workspace roots, tool schemas and the tool list."""
