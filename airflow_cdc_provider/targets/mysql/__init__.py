"""MySQL and MariaDB as targets: tables in one database; a new copy is swapped in by one RENAME."""
