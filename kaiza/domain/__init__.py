"""Domain values and pure functions. No disk access, clock or randomness."""
