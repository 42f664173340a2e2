"""One table: its schema, the state and the control record of its copy, and how a batch is merged into it."""
