"""Embedded systems for the demo and the tests. Independent readings of the protocols: nothing here imports a connector."""
