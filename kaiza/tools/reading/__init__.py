"""Tools that read files and directories."""
