"""What a column of the source becomes in the copy: names, types and values. Pure."""
