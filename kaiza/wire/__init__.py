"""How it is asked and told; one dialect a file."""
