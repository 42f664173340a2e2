"""The Spark jobs: one file per step, run by ``spark-submit`` through ``runtime.harness``."""

from spark_jobs.runtime import no_pandas

no_pandas.install()
