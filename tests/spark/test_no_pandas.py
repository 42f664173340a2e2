"""Drivers and tasks do not load pandas; an explicit import does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PROGRAM = """
import sys
from spark_jobs.batches import batch_stats, small_frames
from spark_jobs.runtime import sessions

def loaded(*found):
    from spark_jobs.batches import batch_stats
    return "pandas" in sys.modules

spark = sessions.build_session("frames", [])
small_frames.small_frame(spark, [("a",)], small_frames.text_schema("name")).toArrow()
spark.createDataFrame([], "name STRING").collect()
print("driver", loaded())
print("task", *spark.sparkContext.parallelize([0], 1).map(loaded).collect())
print("own", *spark.range(1).mapInArrow(lambda batches: batches, "id BIGINT").toPandas().id, loaded())
"""


@pytest.mark.jvm
@pytest.mark.nightly
def test_pandas_is_loaded_only_by_an_explicit_import() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=REPOSITORY, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith(("driver", "task", "own"))]
    assert lines == ["driver False", "task False", "own 0 True"], done.stderr
