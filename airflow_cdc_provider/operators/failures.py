"""Maps the provider's errors to Airflow's exceptions: skip, fail, or fail with retries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from airflow_cdc_provider.core.errors import CdcError, Fenced


class TaskFailed(AirflowException):
    """The task failed and may be retried."""


def airflow_exception(error: CdcError) -> AirflowException:
    """Fenced skips the task, a retryable error fails it with retries, any other error fails it without retries."""
    if isinstance(error, Fenced):
        return AirflowSkipException(str(error))
    if error.retryable:
        return TaskFailed(str(error))
    return AirflowFailException(str(error))


@contextmanager
def as_airflow_failures() -> Iterator[None]:
    """Wraps the body of ``execute``: the task log shows the problem's text without a stack trace of the provider."""
    try:
        yield
    except CdcError as error:
        raise airflow_exception(error) from None
