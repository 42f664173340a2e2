"""Bulk API 2.0 queries: a query job is created and polled. Its result pages can be read for a week, in any order, any
number of times."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tenacity import retry, retry_if_exception_type, stop_after_attempt

from airflow_cdc_provider.connectors.sources.salesforce.columns import cast_columns
from airflow_cdc_provider.connectors.sources.salesforce.csv_result import IncompletePage, read_page
from airflow_cdc_provider.connectors.sources.salesforce.failures import REST
from airflow_cdc_provider.connectors.sources.salesforce.http import Http
from airflow_cdc_provider.connectors.sources.salesforce.query import select
from airflow_cdc_provider.core.errors import CdcError, CheckFailed, Problem, SourceUnavailable
from airflow_cdc_provider.core.table.schema import TableSchema

if TYPE_CHECKING:
    import pyarrow as pa

MIN_PAUSE_S, MAX_PAUSE_S = 0.5, 20.0
TRIES_PER_PAGE = 3
NOT_SUPPORTED = "not supported by the bulk api"
CODE = re.compile(r"\b[A-Z][A-Z_]{5,}\b")
RUNNING = frozenset({"UploadComplete", "InProgress", "Open"})


class BulkNotSupported(Exception):
    """The Bulk API does not support the object: it must be read over REST."""


@dataclass(frozen=True)
class BulkJob:
    """``created_at``: by the server's clock. ``pages``: paths of result pages, which together contain ``rows`` rows."""

    id: str
    created_at: datetime
    rows: int
    pages: tuple[str, ...]


class Bulk:
    """``sleep`` is a seam for tests."""

    def __init__(self, http: Http, version: str, sleep: Callable[[float], None] = time.sleep) -> None:
        self._http = http
        self._jobs = f"/services/data/v{version}/jobs/query"
        self._sleep = sleep

    @contextmanager
    def query(
        self, schema: TableSchema, where: str = "", *, progress: Callable[[int], object] = int
    ) -> Iterator[BulkJob]:
        """Query all columns of records, deleted and archived ones included. ``progress`` is called with the number of
        rows that the server has processed so far. The job is deleted when the context ends.

        Raises BulkNotSupported if the object requires REST, SourceUnavailable (SRC046) if the job failed.
        """
        job = self._create(select(schema, where))
        try:
            done = self._wait_for_job(schema.table, job["id"], progress)
            pages = tuple(self._pages(job["id"]))
            created_at = datetime.fromisoformat(job["createdDate"])
            yield BulkJob(job["id"], created_at, int(done.get("numberRecordsProcessed", 0)), pages)
        finally:
            self._delete_job(job["id"])

    def page(self, path: str, schema: TableSchema) -> pa.Table:
        """One result page in the table's types. Raises what ``texts`` and ``cast_columns`` raise."""
        return cast_columns(self.texts(path, schema), schema)

    def texts(self, path: str, schema: TableSchema) -> pa.Table:
        """One result page. An incomplete response is requested again. Raises SourceUnavailable (SRC047)."""
        try:
            return self._complete_page(path, schema)
        except IncompletePage as error:
            raise SourceUnavailable(_page_problem(schema.table, str(error))) from error

    @retry(retry=retry_if_exception_type(IncompletePage), stop=stop_after_attempt(TRIES_PER_PAGE), reraise=True)
    def _complete_page(self, path: str, schema: TableSchema) -> pa.Table:
        response = self._http.send("GET", path, headers={"Accept": "text/csv", "Accept-Encoding": "gzip"})
        announced = response.headers.get("Sforce-NumberOfRecords", "")
        return read_page(response.content, schema.names, int(announced) if announced.isdecimal() else None)

    def _create(self, soql: str) -> dict[str, Any]:
        body = {
            "operation": "queryAll",
            "query": soql,
            "contentType": "CSV",
            "columnDelimiter": "COMMA",
            "lineEnding": "LF",
        }
        try:
            job: dict[str, Any] = self._http.json("POST", self._jobs, json=body)
        except CheckFailed as error:
            if NOT_SUPPORTED in str(error).lower():
                raise BulkNotSupported(str(error)) from error
            raise
        return job

    def _wait_for_job(self, table: str, job: str, progress: Callable[[int], object]) -> dict[str, Any]:
        pause = MIN_PAUSE_S
        while True:
            status: dict[str, Any] = self._http.json("GET", f"{self._jobs}/{job}")
            if status["state"] == "JobComplete":
                return status
            if status["state"] not in RUNNING:
                message = str(status.get("errorMessage", ""))
                if NOT_SUPPORTED in message.lower():
                    raise BulkNotSupported(message)
                raise _job_failure(table, job, status["state"], message)
            progress(int(status.get("numberRecordsProcessed", 0)))
            self._sleep(pause)
            pause = min(MAX_PAUSE_S, 1.5 * pause)

    def _pages(self, job: str) -> Iterator[str]:
        path = f"{self._jobs}/{job}/resultPages"
        while path:
            response = self._http.json("GET", path)
            yield from (page["resultUrl"] for page in response["resultPages"])
            path = "" if response["done"] else response["nextRecordsUrl"]

    def _delete_job(self, job: str) -> None:
        """Errors are ignored: Salesforce deletes the job after a week, and the copy must not fail for it."""
        with suppress(CdcError):
            state = self._http.json("GET", f"{self._jobs}/{job}")["state"]
            if state in RUNNING:
                self._http.send("PATCH", f"{self._jobs}/{job}", json={"state": "Aborted"})
            self._http.send("DELETE", f"{self._jobs}/{job}")


def _job_failure(table: str, job: str, state: str, message: str) -> CdcError:
    """The message begins with the code of the failure, if there is one: ``InvalidBatch : MALFORMED_QUERY: …``."""
    problem = _job_problem(table, job, state, message)
    known = [REST[code] for code in CODE.findall(message) if code in REST]
    if known and not known[0].error.retryable:
        return CheckFailed(replace(problem, do=known[0].do))
    return SourceUnavailable(problem)


def _job_problem(table: str, job: str, state: str, message: str) -> Problem:
    return Problem(
        "SRC046",
        f"the bulk query of {table} did not finish",
        where=f"job {job}",
        found=f"{state}: {message[:300]}".rstrip(": "),
        data="nothing of this copy was written",
        do="wait for the next try; if every try times out, select fewer columns",
    )


def _page_problem(table: str, found: str) -> Problem:
    return Problem(
        "SRC047",
        f"a result page of {table} is incomplete",
        found=f"{found}, {TRIES_PER_PAGE} times",
        data="nothing of this page was used",
        do="wait for the next try; check proxies between this worker and Salesforce",
    )
