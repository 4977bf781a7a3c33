"""Read models for people: values that the command line renders or prints as JSON. They change nothing."""
