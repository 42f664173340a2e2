"""Databases and services that are read directly, one folder each."""
