"""Exact copies of source tables in lakehouse and warehouse tables, run by Airflow."""

__version__ = "0.1.0"
