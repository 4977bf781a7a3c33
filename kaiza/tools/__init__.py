"""What Kaiza does; one verb a file."""
