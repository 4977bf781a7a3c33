"""Plans: strict parser of plan files, parsed values, scope and limits."""
