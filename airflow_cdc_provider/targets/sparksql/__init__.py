"""Plain Spark SQL for targets that Spark writes to: names, types, a merge, checksums."""
