"""SQL tables that have a timestamp of the last change, polled over SQLAlchemy."""
