"""Carries a ``CdcError`` from an executor's Python through Spark, which passes on only its text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from airflow_cdc_provider.core import errors
from airflow_cdc_provider.core.errors import CdcError, Problem
from airflow_cdc_provider.core.serde import from_plain, to_plain

MARK = "CDC_FAILED "
MARKED = re.compile(rf"{MARK}(\{{.*\}})$", re.MULTILINE)


class RemoteFailure(Exception):
    """The error that an executor's Python raises."""


@contextmanager
def as_remote_failure() -> Iterator[None]:
    """For code that runs in an executor."""
    try:
        yield
    except CdcError as error:
        failure = {"kind": type(error).__name__, "problems": to_plain(error.problems)}
        raise RemoteFailure(f"{MARK}{json.dumps(failure)}") from None


@contextmanager
def from_remote_failure() -> Iterator[None]:
    """For code of the driver that waits for executors. Raises the original error."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        match = MARKED.search(str(error))
        if match is None:
            raise
        failure = json.loads(match[1])
        kind: type[CdcError] = getattr(errors, failure["kind"])
        raise kind(*(from_plain(Problem, problem) for problem in failure["problems"])) from None
