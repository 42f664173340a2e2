"""Operators of a replicator's DAG."""
