"""Transports: how requests reach the application, and answers the client."""
