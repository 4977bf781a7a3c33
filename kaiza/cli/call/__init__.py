"""`kaiza call`: call one tool of a server, as a client does."""
