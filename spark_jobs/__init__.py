"""The Spark jobs: one small file per step, run by ``spark-submit``, with ``harness`` around each."""

from spark_jobs.runtime import no_pandas

no_pandas.keep_out()
