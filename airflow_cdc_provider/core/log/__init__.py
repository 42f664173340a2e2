"""The change log: its records, its files, and positions in the source's stream."""
