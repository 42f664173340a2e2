"""Apache Iceberg: tables in a catalog; cursor and fence are in the snapshots, read and written without a JVM."""
