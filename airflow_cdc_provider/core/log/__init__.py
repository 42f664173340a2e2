"""The change log: records, files, and positions in the source's stream."""
