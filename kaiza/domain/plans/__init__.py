"""Plans: the strict parser of plan files, the value it returns, scope and limits."""
