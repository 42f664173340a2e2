"""The definition of a replicator, and the tables and columns that it selects."""
