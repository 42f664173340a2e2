"""What a worker does between Spark jobs: observe the systems, carry out the decision, raise fences, check the commits,
acknowledge, clean up. Operators and the command line call it; it does not import Airflow."""
