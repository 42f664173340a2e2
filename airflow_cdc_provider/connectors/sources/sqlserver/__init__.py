"""Source connector for SQL Server: the change tables of Change Data Capture."""
