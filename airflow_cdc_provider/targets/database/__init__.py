"""The common part of all SQL database targets: the control row, the commit, and the merge as SQL statements."""
