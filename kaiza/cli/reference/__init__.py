"""Reference commands: error codes, tools, caps and schemas."""
