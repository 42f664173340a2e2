"""Delta Lake: one table per folder; cursor and fence in the table's own log, read and written without a JVM."""
