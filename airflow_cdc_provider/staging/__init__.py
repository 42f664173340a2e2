"""The storage of the change log: a small store interface for folders and buckets, and the log on top of it."""
