"""How it looks; records in, text out."""
