"""Wire formats: lines to tool calls, outcomes to lines. Pure; the transports are in `kaiza.server`."""
