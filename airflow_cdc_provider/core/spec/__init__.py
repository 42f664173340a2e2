"""What the YAML of a replicator says: its definition, and which tables and columns that selects."""
