"""Change data capture for Apache Airflow: exact copies of source tables in lakehouse and warehouse tables."""

__version__ = "0.1.0"
