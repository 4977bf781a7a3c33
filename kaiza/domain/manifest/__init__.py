"""What changed in a workspace without Kaiza: values, and the comparison with what the log records."""
