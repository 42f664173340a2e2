"""The Spark jobs: one small file per step, run by ``spark-submit``, with ``harness`` around each."""
