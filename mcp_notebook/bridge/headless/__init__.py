"""What this room is for: to be written."""
