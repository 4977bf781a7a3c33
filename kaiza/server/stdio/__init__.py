"""The stdio transport: framing, pending requests, the worker pool and deadlines."""
