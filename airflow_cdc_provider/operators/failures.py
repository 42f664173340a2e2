"""How the provider's errors end an Airflow task: skipped, failed for good, or failed to be tried again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from airflow_cdc_provider.core.errors import CdcError, Fenced


class TaskFailed(AirflowException):
    """The task failed and may be tried again."""


def airflow_exception(error: CdcError) -> AirflowException:
    """*Fenced* ends quietly; what a retry can cure is retried as often as the DAG says; all else fails at once."""
    if isinstance(error, Fenced):
        return AirflowSkipException(str(error))
    if error.retryable:
        return TaskFailed(str(error))
    return AirflowFailException(str(error))


@contextmanager
def as_airflow_failures() -> Iterator[None]:
    """Wrap the body of ``execute``. The task log then shows the problem's own words, not a stack of ours."""
    try:
        yield
    except CdcError as error:
        raise airflow_exception(error) from None
