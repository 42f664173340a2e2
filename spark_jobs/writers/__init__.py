"""How rows get into each kind of target, and what a commit says that went wrong."""
