"""PostgreSQL: one main slot decoded by ``pgoutput``, exact copies under snapshots exported by temporary slots."""
