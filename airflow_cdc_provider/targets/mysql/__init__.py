"""MySQL and MariaDB as targets: tables in one database; a copy is swapped in by one RENAME."""
