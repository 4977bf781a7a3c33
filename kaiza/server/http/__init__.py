"""The HTTP transport: a Starlette application around the pipeline, and the server with its limits."""
