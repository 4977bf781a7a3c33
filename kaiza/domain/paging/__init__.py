"""Paging of listings: cursors and the response size budget."""
