"""The change log's storage: a small object-store shape over folders and buckets, and the log on top of it."""
