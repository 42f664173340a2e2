"""What an Airflow connection may contain and how it is read for each kind of system."""
