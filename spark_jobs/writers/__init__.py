"""Writers for each kind of target, and the errors of their commits."""
