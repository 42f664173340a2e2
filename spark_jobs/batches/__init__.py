"""A batch: its windows, the rows staged for one merge, and their statistics."""
