"""Bulk API 2.0 queries: a job, patience, and result pages that can be read again and in any order for a week."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.sources.salesforce.columns import typed
from airflow_cdc_provider.connectors.sources.salesforce.csv_result import BrokenPage, read_page
from airflow_cdc_provider.connectors.sources.salesforce.http import Http
from airflow_cdc_provider.connectors.sources.salesforce.query import select
from airflow_cdc_provider.core.errors import CdcError, CheckFailed, Problem, SourceUnavailable
from airflow_cdc_provider.core.table.schema import TableSchema

if TYPE_CHECKING:
    import pyarrow as pa

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 20.0
TRIES_PER_PAGE = 3
NOT_SUPPORTED = "not supported by the bulk api"
RUNNING = frozenset({"UploadComplete", "InProgress", "Open"})


class BulkRefused(Exception):
    """The object has to be read over REST: the Bulk API does not serve it."""


@dataclass(frozen=True)
class BulkJob:
    """``began`` is the server's time when the job was made. ``pages`` are paths of results, each readable by itself;
    together they hold ``rows`` rows."""

    id: str
    began: datetime
    rows: int
    pages: tuple[str, ...]


class Bulk:
    """``sleep`` is a seam for tests."""

    def __init__(self, http: Http, version: str, sleep: Callable[[float], object] = time.sleep) -> None:
        self._http = http
        self._jobs = f"/services/data/v{version}/jobs/query"
        self._sleep = sleep

    @contextmanager
    def query(
        self, schema: TableSchema, where: str = "", *, deleted: bool = False, progress: Callable[[int], object] = int
    ) -> Iterator[BulkJob]:
        """Run a query over all columns; ``progress`` is told the rows the server has so far. The job goes with the
        context.

        Raises BulkRefused where the object needs REST, SourceUnavailable (SRC046) where the job failed.
        """
        made = self._create(select(schema, where), deleted)
        try:
            done = self._finished(schema.table, made["id"], progress)
            pages = tuple(self._pages(made["id"]))
            yield BulkJob(made["id"], _moment(made["createdDate"]), int(done.get("numberRecordsProcessed", 0)), pages)
        finally:
            self._forget(made["id"])

    def page(self, path: str, schema: TableSchema) -> pa.Table:
        """One page of a job's result, in the table's types; read again, where it did not come whole. Raises
        SourceUnavailable (SRC047), and Unreadable where a value is none of its column's type."""
        for tries_left in reversed(range(TRIES_PER_PAGE)):
            response = self._http.send("GET", path, headers={"Accept": "text/csv", "Accept-Encoding": "gzip"})
            announced = response.headers.get("Sforce-NumberOfRecords", "")
            try:
                texts = read_page(response.content, schema.names, int(announced) if announced.isdecimal() else None)
            except BrokenPage as error:
                if not tries_left:
                    raise SourceUnavailable(self._broken(schema.table, str(error))) from error
            else:
                return typed(texts, schema)
        raise AssertionError("a try either returns or raises")

    def _create(self, soql: str, deleted: bool) -> dict[str, Any]:
        body = {
            "operation": "queryAll" if deleted else "query",
            "query": soql,
            "contentType": "CSV",
            "columnDelimiter": "COMMA",
            "lineEnding": "LF",
        }
        try:
            made: dict[str, Any] = self._http.json("POST", self._jobs, json=body)
        except CheckFailed as error:
            if NOT_SUPPORTED in str(error).lower():
                raise BulkRefused(str(error)) from error
            raise
        return made

    def _finished(self, table: str, job: str, progress: Callable[[int], object]) -> dict[str, Any]:
        pause = FIRST_PAUSE_S
        while True:
            told: dict[str, Any] = self._http.json("GET", f"{self._jobs}/{job}")
            if told["state"] == "JobComplete":
                return told
            if told["state"] not in RUNNING:
                message = str(told.get("errorMessage", ""))
                if NOT_SUPPORTED in message.lower():
                    raise BulkRefused(message)
                raise SourceUnavailable(self._failed(table, job, told["state"], message))
            progress(int(told.get("numberRecordsProcessed", 0)))
            self._sleep(pause)
            pause = min(LONGEST_PAUSE_S, 1.5 * pause)

    def _pages(self, job: str) -> Iterator[str]:
        path = f"{self._jobs}/{job}/resultPages"
        while path:
            answer = self._http.json("GET", path)
            yield from (page["resultUrl"] for page in answer["resultPages"])
            path = "" if answer["done"] else answer["nextRecordsUrl"]

    def _forget(self, job: str) -> None:
        """Take the job away. Where that fails, Salesforce does it after a week: the copy must not fail for it."""
        with suppress(CdcError):
            state = self._http.json("GET", f"{self._jobs}/{job}")["state"]
            if state in RUNNING:
                self._http.send("PATCH", f"{self._jobs}/{job}", json={"state": "Aborted"})
            self._http.send("DELETE", f"{self._jobs}/{job}")

    def _failed(self, table: str, job: str, state: str, message: str) -> Problem:
        return Problem(
            "SRC046",
            f"the bulk query of {table} did not finish",
            where=f"job {job}",
            found=f"{state}: {message[:300]}".rstrip(": "),
            data="nothing of this copy was written",
            do="the next try asks again; where it times out for good, narrow the columns",
        )

    def _broken(self, table: str, found: str) -> Problem:
        return Problem(
            "SRC047",
            f"a result page of {table} did not come whole",
            found=f"{found}, {TRIES_PER_PAGE} times",
            data="nothing of this page was used",
            do="the next try reads it again; check proxies between this worker and Salesforce",
        )


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
