"""Tools that read context caches. They need no session, and fail with the codes of context tools only."""
