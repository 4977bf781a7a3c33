"""Context caches on disk: `.kaiza/context/`, what is built into it, and how it is read."""
