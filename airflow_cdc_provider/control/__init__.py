"""What a worker does between Spark jobs: learn the facts, carry out the decision, raise fences, prove, acknowledge,
clean up. No Airflow in sight: operators and command line call it."""
