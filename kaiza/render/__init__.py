"""How values look to people: text for terminals. Pure; returns lines and prints nothing."""
