"""MySQL and MariaDB: windows of the row binlog, by file and position."""
