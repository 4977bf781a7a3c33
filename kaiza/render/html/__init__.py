"""The review page: one HTML file without a template engine."""
