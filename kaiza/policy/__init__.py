"""Decide whether a call is allowed. Start with `judge`: it lists every rule in the order it is checked."""
