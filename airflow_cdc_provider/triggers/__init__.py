"""Triggers that run in the triggerer."""
