"""The state store: leases, commands, attempts, audit log and an index of table states, in SQLite or PostgreSQL."""
