"""Connections to the outside: Airflow connections, spark-submit, the state store."""
