"""Tasks that wait for a replicator."""
