"""Jobs of BigQuery. A job has an id that we choose: if the answer to a request is lost, the job is asked for by its id,
and never starts twice."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.registry import load_library
from airflow_cdc_provider.targets import costs
from airflow_cdc_provider.targets.bigquery.client import library
from airflow_cdc_provider.targets.bigquery.failures import Cause, JobFailed

REQUEST_LIMIT_S = 60.0
"""How long one request is repeated while the network or the server fails."""

DELAYS_S = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""Between the tries of a job that BigQuery rejected for its rate, cancelled for another one, or that failed inside
BigQuery."""

LONGEST_QUERY_MS = 6 * 3600 * 1000
"""The most that BigQuery allows. A project can have a lower default, and another time zone."""

Started = Callable[[], None]
MayRetry = Callable[[JobFailed], bool]


def is_repeatable(failed: JobFailed) -> bool:
    """Whether a single statement or load may be tried again: nothing of it is done."""
    return failed.cause in (Cause.PACED, Cause.CONFLICT)


@dataclass(frozen=True)
class Jobs:
    """``labels``: of every job. ``limit``: of the bytes that a query may be billed for."""

    client: Any
    labels: Mapping[str, str] = field(default_factory=dict)
    limit: int | None = None

    def query(self, sql: str, job_id: str, started: Started = lambda: None, may_retry: MayRetry = is_repeatable) -> Any:
        """A statement or script. ``may_retry``: whether to try again after a failure. Returns the job, which has
        succeeded. Raises JobFailed."""
        limit = {} if self.limit is None else {"maximum_bytes_billed": self.limit}
        config = library().QueryJobConfig(
            labels=dict(self.labels),
            job_timeout_ms=LONGEST_QUERY_MS,
            connection_properties=[library().ConnectionProperty(key="time_zone", value="UTC")],
            **limit,
        )

        def submit(full_id: str) -> Any:
            return self.client.query(sql, config, job_id=full_id, retry=request_retry(), job_retry=None)

        return self._run(submit, job_id, started, may_retry)

    def load(self, submit: Callable[[str, Any], Any], job_id: str, schema: Sequence[Any], creates: bool) -> Any:
        """``submit``: starts the job with an id and a configuration. ``creates``: the table, if it is missing. Returns
        the job."""
        bigquery = library()
        config = bigquery.LoadJobConfig(
            labels=dict(self.labels),
            source_format=bigquery.SourceFormat.PARQUET,
            write_disposition=bigquery.WriteDisposition.WRITE_APPEND,
            create_disposition="CREATE_IF_NEEDED" if creates else "CREATE_NEVER",
            column_name_character_map="V2",
            schema=schema,
        )

        def submit_load(full_id: str) -> Any:
            failpoint("load.before_commit")
            job = submit(full_id, config)
            failpoint("load.after_commit")
            return job

        return self._run(submit_load, job_id, lambda: None, is_repeatable)

    def find(self, job_id: str) -> Any | None:
        exceptions = load_library("google.api_core.exceptions", "target", "bigquery")
        try:
            return self.client.get_job(job_id, location=self.client.location, retry=request_retry())
        except exceptions.NotFound:
            return None

    def wait_for_all(self, job_id: str) -> bool:
        """Wait until no job of this id runs any more, whatever its outcome. Whether one was still running."""
        waited = False
        for number in range(len(DELAYS_S) + 1):
            job = self.find(numbered(job_id, number))
            if job is None:
                return waited
            if job.state != "DONE":
                waited = True
                outcome(job)
        return waited

    def _run(self, submit: Callable[[str], Any], job_id: str, started: Started, may_retry: MayRetry) -> Any:
        for number, delay in enumerate((*DELAYS_S, None)):
            job = self._submitted(submit, numbered(job_id, number))
            started()
            failed = outcome(job)
            costs.add("bytes_billed", getattr(job, "total_bytes_billed", None) or 0)
            costs.add("slot_ms", getattr(job, "slot_millis", None) or 0)
            if failed is None:
                return job
            if delay is None or not may_retry(failed):
                raise failed
            time.sleep(delay * random.uniform(0.5, 1.5))
        raise AssertionError("the last try returns or raises")

    def _submitted(self, submit: Callable[[str], Any], full_id: str) -> Any:
        exceptions = load_library("google.api_core.exceptions", "target", "bigquery")
        requests = load_library("requests.exceptions", "target", "bigquery")
        try:
            return submit(full_id)
        except (exceptions.Conflict, requests.ConnectionError, requests.Timeout):
            job = self.find(full_id)
            if job is None:
                raise
            return job


def numbered(job_id: str, number: int) -> str:
    """The id of a try. A try with the next number starts only after the one before has failed."""
    return f"{job_id}-{number}"


def outcome(job: Any) -> JobFailed | None:
    """Waits for the end of a job. Raises errors of the network."""
    exceptions = load_library("google.api_core.exceptions", "target", "bigquery")
    try:
        job.result(retry=request_retry(), **({"job_retry": None} if job.job_type == "query" else {}))
    except exceptions.GoogleAPICallError:
        job.reload(retry=request_retry())
        if not job.error_result:
            raise
    error = job.error_result
    return JobFailed(str(error.get("reason", "")), str(error.get("message", ""))) if error else None


def request_retry() -> Any:
    """The library's own retry of a request, for a limited time."""
    return load_library("google.cloud.bigquery.retry", "target", "bigquery").DEFAULT_RETRY.with_timeout(REQUEST_LIMIT_S)


def rows_of(job: Any) -> Iterator[tuple[Any, ...]]:
    for row in job.result(retry=request_retry(), job_retry=None):
        yield tuple(row.values())
