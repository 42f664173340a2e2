"""The state store: leases, requests, attempts, audit and an index of table states, on SQLite or PostgreSQL."""
