"""How an Airflow connection is read for each type of system, and which options it may contain."""
