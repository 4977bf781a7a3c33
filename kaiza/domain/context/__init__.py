"""Context caches: their format, their documents' ids, and which documents answer a query within a budget."""
