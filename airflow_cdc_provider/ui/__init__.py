"""The REST API and the page of replicators, inside Airflow's API server."""
