"""Rules, one per file. `kaiza.policy.judge` has the order in which they are checked."""
