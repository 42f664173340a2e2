"""A table: its schema, the state and control record of its copy, and how a batch is merged."""
