"""May it go ahead? One rule a file."""
