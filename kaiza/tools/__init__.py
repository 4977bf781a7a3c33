"""The tools that agents call: one module each, which reads the workspace through a view and proposes changes."""
