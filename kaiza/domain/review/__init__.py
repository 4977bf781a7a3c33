"""Review of what agents did: the report value, and the pure functions it is computed with."""
