"""Context caches on disk, in `.kaiza/context/`: builds, reads and removes them."""
