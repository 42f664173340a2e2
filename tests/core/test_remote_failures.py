"""A failure in an executor is the same failure in the driver."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from airflow_cdc_provider.core.errors import CheckFailed, Problem, SourceUnavailable
from spark_jobs.runtime.remote_errors import RemoteFailure, as_remote_failure, from_remote_failure

PROBLEM = Problem("SRC047", "a page came\nbroken", found='"quoted"', do="again")


@pytest.mark.parametrize("kind", [SourceUnavailable, CheckFailed])
def test_a_failure_keeps_its_class_and_its_problems(kind: type[SourceUnavailable]) -> None:
    with pytest.raises(RemoteFailure) as remote, as_remote_failure():
        raise kind(PROBLEM, PROBLEM)
    trace = f"Traceback (most recent call last):\n  File ...\nspark_jobs.RemoteFailure: {remote.value}\n\tat java"
    with pytest.raises(kind) as local, from_remote_failure():
        raise PySparkException(trace)
    assert local.value.problems == (PROBLEM, PROBLEM) and not isinstance(local.value, PySparkException)


def test_other_failures_are_unchanged() -> None:
    with pytest.raises(ValueError, match="x"), as_remote_failure():
        raise ValueError("x")
    with pytest.raises(PySparkException, match="y"), from_remote_failure():
        raise PySparkException("y")
