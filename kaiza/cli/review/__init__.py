"""`kaiza diff` and `kaiza review`: what agents did and what changed, for people."""
