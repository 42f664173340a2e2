"""`make demo`: two sources, a real Airflow, two replicators, and the proof that both sides are identical."""
