"""Context caches on disk, in `.kaiza/context/`: builds, reads and removes them."""

__all__ = ["cache_builder", "cache_files", "source_scan"]
