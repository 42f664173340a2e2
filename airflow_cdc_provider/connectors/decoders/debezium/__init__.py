"""Debezium change events as JSON: envelopes and unwrapped rows of six kinds of databases."""
