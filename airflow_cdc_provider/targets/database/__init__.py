"""What all SQL databases have in common as targets: the control row, the commit, the merge as a list of statements."""
