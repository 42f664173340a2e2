"""Comparisons of copies with their sources, and the repair of what differs."""
