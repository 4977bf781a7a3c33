"""Rules that decide whether a call may go ahead, one a file. The order is in `kaiza.policy.judge`."""
