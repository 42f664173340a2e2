"""What reaches outside on behalf of an operator: Airflow connections, spark-submit, the state store."""
