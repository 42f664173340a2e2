"""Snowflake as a target: tables in one schema; data, cursor and fence in one transaction."""
