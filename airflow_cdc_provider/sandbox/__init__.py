"""Embedded systems for the demo and the tests. Nothing here imports a connector."""
