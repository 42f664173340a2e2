"""`make demo`: two sources, a real Airflow and two replicators, whose copies are verified at the end."""
