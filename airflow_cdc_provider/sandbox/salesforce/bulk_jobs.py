"""Bulk API 2.0 query jobs. A job reads in pieces while others commit: its result is not a consistent snapshot.

Pieces are read in random order: Salesforce splits a job by primary key and processes the pieces in parallel.
"""

from __future__ import annotations

import random
import secrets
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from airflow_cdc_provider.sandbox.salesforce.clock import Clock
from airflow_cdc_provider.sandbox.salesforce.errors import ApiError
from airflow_cdc_provider.sandbox.salesforce.faults import BulkFault, Faults
from airflow_cdc_provider.sandbox.salesforce.fields import Field
from airflow_cdc_provider.sandbox.salesforce.objects import ObjectType, Row
from airflow_cdc_provider.sandbox.salesforce.soql.parse import Query
from airflow_cdc_provider.sandbox.salesforce.soql.run import find_rows
from airflow_cdc_provider.sandbox.salesforce.storage import Store, Table
from airflow_cdc_provider.sandbox.salesforce.users import User

LIFE_S = 7 * 86_400
PIECE_ROWS = 20_000
PAGE_ROWS = 50_000


@dataclass
class Job:
    """``state``: UploadComplete, InProgress, JobComplete, Aborted or Failed. ``rows`` grow while it is in progress."""

    id: str
    version: str
    operation: str
    text: str
    query: Query
    object: ObjectType
    fields: Sequence[Field]
    user: User
    delimiter: str
    line_end: str
    created_ms: int
    state: str = "UploadComplete"
    error: str = ""
    rows: list[Row] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    @property
    def ordered(self) -> bool:
        """Whether the query has an order or a limit, so that the job cannot be split."""
        return bool(self.query.orderings) or self.query.limit is not None


class BulkJobs:
    """``scientific``: numbers from ten million on are written like ``1.39E8``."""

    def __init__(self, store: Store, clock: Clock, faults: Faults, seed: int = 1) -> None:
        self.piece_rows, self.page_rows = PIECE_ROWS, PAGE_ROWS
        self.scientific = False
        self._store, self._clock, self._faults = store, clock, faults
        self._jobs: dict[str, Job] = {}
        self._random = random.Random(seed)

    def start(self, job: Job) -> None:
        self._jobs[job.id] = job
        threading.Thread(target=self._run, args=(job, self._faults.bulk_fault()), daemon=True).start()

    def new_id(self) -> str:
        return f"7505g0000{secrets.token_hex(5)[:9]}"

    def find(self, key: str, version: str = "") -> Job:
        """Raises ApiError: 404, or 409 if ``version`` is not the job's version of the API."""
        job = self._jobs.get(key)
        if job is None or self._clock.now_ms() - job.created_ms > LIFE_S * 1000:
            raise ApiError(404, "NOT_FOUND", "The requested resource does not exist")
        if version and version != job.version:
            message = f"The API version in the request ({version}) is not that of the job ({job.version})"
            raise ApiError(409, "API_ERROR", message)
        return job

    def all(self) -> list[Job]:
        return list(self._jobs.values())

    def abort(self, job: Job) -> None:
        job.state = "Aborted"
        job.released.set()

    def delete(self, job: Job) -> None:
        if job.state in ("UploadComplete", "InProgress"):
            raise ApiError(400, "API_ERROR", "Unable to delete job: its state must be Completed, Aborted or Failed")
        del self._jobs[job.id]

    def release(self) -> None:
        """Continue waiting jobs."""
        for job in self._jobs.values():
            job.released.set()

    def _run(self, job: Job, fault: BulkFault | None) -> None:
        job.state = "InProgress"
        if fault and fault.state == "Failed":
            job.state, job.error = "Failed", fault.message
            return
        table = self._store.table(job.object.name)
        everything = job.operation == "queryAll"
        now = self._clock.second()
        if job.ordered:
            with self._store.lock:
                pieces: Iterable[list[Row]] = [find_rows(job.query, table, job.user, everything, now)]
        else:
            pieces = self._pieces(job, table, everything, now)
        for piece in self._read(job, fault, pieces):
            if job.state == "Aborted":
                return
            job.rows += piece
        if job.state == "InProgress":
            job.state = "JobComplete"

    @staticmethod
    def _read(job: Job, fault: BulkFault | None, pieces: Iterable[list[Row]]) -> Iterable[list[Row]]:
        """With a fault, wait for the release before the next piece is read."""
        remaining = iter(pieces)
        while True:
            if fault and len(job.rows) >= fault.hold_after_rows:
                job.released.wait()
            piece = next(remaining, None)
            if piece is None:
                return
            yield piece

    def _pieces(self, job: Job, table: Table, everything: bool, now: str) -> Iterable[list[Row]]:
        """The current ids, split into pieces in random order. The rows of a piece are read when it is taken."""
        with self._store.lock:
            ids = sorted(table.rows)
        starts = list(range(0, len(ids), self.piece_rows))
        self._random.shuffle(starts)
        for start in starts:
            with self._store.lock:
                piece = Table(table.type)
                piece_ids = ids[start : start + self.piece_rows]
                piece.rows = {key: table.rows[key] for key in piece_ids if key in table.rows}
                rows = find_rows(job.query, piece, job.user, everything, now)
            yield rows
