"""Storage: everything Kaiza reads from or writes to disk. No other package opens files."""
