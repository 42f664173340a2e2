"""Folds the changes of a key to its row."""
