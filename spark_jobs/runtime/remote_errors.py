"""Failures with words, on their way from an executor's Python through Spark, which passes on text and nothing else."""

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
    """What an executor's Python dies of."""


@contextmanager
def as_remote_failure() -> Iterator[None]:
    """Around what runs in an executor."""
    try:
        yield
    except CdcError as error:
        said = {"kind": type(error).__name__, "problems": to_plain(error.problems)}
        raise RemoteFailure(f"{MARK}{json.dumps(said)}") from None


@contextmanager
def from_remote_failure() -> Iterator[None]:
    """Around what waits for it in the driver. Raises the failure as it was."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        found = MARKED.search(str(error))
        if found is None:
            raise
        said = json.loads(found[1])
        kind: type[CdcError] = getattr(errors, said["kind"])
        raise kind(*(from_plain(Problem, one) for one in said["problems"])) from None
