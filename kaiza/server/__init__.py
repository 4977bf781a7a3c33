"""The transports."""
