"""Delta Lake: one folder per table; cursor and fence are in the table's own log, read and written without a JVM."""
