"""Apache Iceberg: tables in a catalog; cursor and fence in their own snapshots, read and written without a JVM."""
