"""What the text of a statement of MySQL or MariaDB does to tables and columns."""
