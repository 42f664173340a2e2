"""What replication is: types and pure decisions. Standard library only, no I/O."""
