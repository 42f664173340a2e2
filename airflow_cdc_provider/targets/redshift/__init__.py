"""Redshift as a target: tables in one schema, loaded through a bucket; data, cursor and fence in one transaction."""
