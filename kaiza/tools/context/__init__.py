"""Tools that read context caches. They need no session, and have error codes of their own."""
