"""Spanner as a target: tables in one database, written by reads by key and mutations."""
