"""Which columns of a source a copy is made of. Pure."""
