"""The tasks of a replicator's DAG."""
