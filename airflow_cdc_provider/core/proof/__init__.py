"""The comparison of a copy with its source, as far as it is pure."""
