"""Any SQL table with a timestamp of its last change, over SQLAlchemy."""
