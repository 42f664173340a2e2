"""Embedded systems for the demo and the tests. No module of this package imports a connector."""
