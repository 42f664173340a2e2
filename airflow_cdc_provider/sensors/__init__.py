"""Sensors that wait for a replicator."""
