"""What is plain Spark SQL: names, types, a merge, checksums. For every target that Spark writes to by itself."""
