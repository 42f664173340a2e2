"""Requests to a Spanner database: transactions that are repeated when Spanner aborts them, reads, and schema changes.

Google's client library sends them, one message each. Its own transactions keep sessions and threads of their own, and
repeat a commit whose answer was lost; here the caller finds out what became of it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from google.protobuf.struct_pb2 import Struct, Value

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.google import google_endpoint, google_login, google_tls_warnings
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.registry import load_library
from airflow_cdc_provider.targets.spanner.errors import translated
from airflow_cdc_provider.targets.spanner.options import SpannerOptions

R = TypeVar("R")
Row = list[Value]

REQUEST_S, SCHEMA_CHANGE_S = 120, 3_600
ABORTED_S = 300
"""How long an aborted transaction is repeated."""

TAG_CHARACTERS = 50

TRIES = 2
"""A commit whose answer was lost is tried once more. The transaction finds out whether it is committed already."""


@dataclass
class Transaction:
    """A read-write transaction: what it reads does not change until its commit."""

    session: Session
    selector: Any
    mutations: list[Any] = field(default_factory=list)

    def read(self, table: str, columns: Sequence[str], keys: Any, limit: int = 0) -> Iterator[Row]:
        return self.session.stream(self.selector, table, columns, keys, limit)

    def write(self, *mutations: Any) -> None:
        """They are applied by the commit, in this order."""
        self.mutations.extend(mutations)


@dataclass(frozen=True)
class Session:
    database: SpannerDatabase
    name: str
    tag: str

    def transact(self, work: Callable[[Transaction], R]) -> R:
        """Commit what ``work`` writes. It is called again if the transaction was aborted or the answer to its commit
        was lost, and must write nothing if its commit is there already."""
        google = _exceptions()
        deadline, lost, delay_s = time.monotonic() + ABORTED_S, 0, 0.02
        while True:
            transaction = Transaction(self, self._begin())
            committing = False
            try:
                result = work(transaction)
                committing = True
                failpoint("commit.before")
                self._commit(transaction.mutations, transaction_id=transaction.selector.id)
                failpoint("commit.after")
                return result
            except google.Aborted:
                if time.monotonic() > deadline:
                    raise
                time.sleep(delay_s * random.uniform(0.5, 1.5))
                delay_s = min(delay_s * 2, 5)
            except (google.ServerError, google.Cancelled):
                lost += 1
                if not committing or lost == TRIES:
                    raise
            except BaseException:
                self._rollback(transaction)
                raise

    def write(self, mutations: Sequence[Any]) -> None:
        """Commit mutations that may be applied more than once."""
        self.transact(lambda transaction: transaction.write(*mutations))

    def read(self, table: str, columns: Sequence[str], keys: Any, limit: int = 0) -> Iterator[Row]:
        """The newest committed rows."""
        return self.stream(None, table, columns, keys, limit)

    def stream(self, selector: Any, table: str, columns: Sequence[str], keys: Any, limit: int = 0) -> Iterator[Row]:
        spanner = self.database.library
        request = spanner.ReadRequest(
            session=self.name,
            table=table,
            columns=columns,
            limit=limit,
            request_options=self._request_options(),
            transaction=selector and spanner.TransactionSelector(id=selector.id),
        )
        spanner.ReadRequest.pb(request).key_set.CopyFrom(keys)
        results = self.database.client.streaming_read(request=request, timeout=REQUEST_S)
        return _rows(results, len(columns), spanner)

    def query(self, sql: str, **parameters: str) -> list[Row]:
        """A query of the newest committed data. ``parameters``: texts, in SQL with ``@`` before the name."""
        spanner = self.database.library
        request = spanner.ExecuteSqlRequest(
            session=self.name,
            sql=sql,
            params=Struct(fields={name: Value(string_value=text) for name, text in parameters.items()}),
            param_types={name: spanner.Type(code=spanner.TypeCode.STRING) for name in parameters},
            request_options=self._request_options(),
        )
        results = self.database.client.execute_streaming_sql(request=request, timeout=REQUEST_S)
        return list(_rows(results, 0, spanner))

    def _begin(self) -> Any:
        spanner = self.database.library
        options = spanner.TransactionOptions(read_write=spanner.TransactionOptions.ReadWrite())
        request = spanner.BeginTransactionRequest(
            session=self.name, options=options, request_options=self._request_options(transaction=True)
        )
        return self.database.client.begin_transaction(request=request, timeout=REQUEST_S)

    def _commit(self, mutations: Sequence[Any], transaction_id: bytes) -> None:
        spanner = self.database.library
        request = spanner.CommitRequest(
            session=self.name,
            transaction_id=transaction_id,
            request_options=self._request_options(transaction=True),
        )
        spanner.CommitRequest.pb(request).mutations.extend(mutations)
        self.database.client.commit(request=request, retry=None, timeout=REQUEST_S)

    def _rollback(self, transaction: Transaction) -> None:
        """Releases its locks. Without it they are released when the transaction has been idle for ten seconds."""
        google = _exceptions()
        with suppress(google.GoogleAPICallError):  # the error that made it necessary is raised
            self.database.client.rollback(
                session=self.name, transaction_id=transaction.selector.id, retry=None, timeout=REQUEST_S
            )

    def _request_options(self, transaction: bool = False) -> Any:
        options = self.database.library.RequestOptions
        tag = {"transaction_tag": self.tag} if transaction else {"request_tag": self.tag}
        priority = getattr(options.Priority, f"PRIORITY_{self.database.options.priority.name}")
        return options(priority=priority, **tag)


@dataclass(frozen=True)
class Partition:
    """A part of a table as of one time, for any process."""

    session: str
    transaction: bytes
    token: bytes


@dataclass(frozen=True)
class SpannerDatabase:
    """Pickled and sent to Spark's executors with the tasks that write rows."""

    info: ConnectionInfo
    options: SpannerOptions
    replicator: str

    def __getstate__(self) -> dict[str, Any]:
        return {"info": self.info, "options": self.options, "replicator": self.replicator}

    @property
    def library(self) -> Any:
        return load_library("google.cloud.spanner_v1.types", "target", "spanner")

    @cached_property
    def credentials(self) -> tuple[Any, str]:
        return google_login(self.info, "spanner")

    @property
    def path(self) -> str:
        project = self.options.project or self.credentials[1]
        return f"projects/{project}/instances/{self.options.instance}/databases/{self.options.database}"

    @property
    def address(self) -> str:
        return f"Spanner database {self.options.instance}/{self.options.database}"

    @cached_property
    def client(self) -> Any:
        return self._client("google.cloud.spanner_v1.services.spanner", "SpannerClient", "SpannerGrpcTransport")

    @cached_property
    def admin(self) -> Any:
        module = "google.cloud.spanner_admin_database_v1.services.database_admin"
        return self._client(module, "DatabaseAdminClient", "DatabaseAdminGrpcTransport")

    def tls_warnings(self) -> list[Problem]:
        return google_tls_warnings(self.info)

    @contextmanager
    def session(self, purpose: str) -> Iterator[Session]:
        """``purpose``: part of the tag of its requests. Errors are raised as CdcError: TargetUnavailable if a retry can
        help, CheckFailed if a right is missing, Blocked if a value does not fit."""
        google = _exceptions()
        with translated(self.address, self.info.connection_id):
            created = self.client.create_session(database=self.path, timeout=REQUEST_S)
            try:
                yield Session(self, created.name, _tag(self.replicator, purpose))
            finally:
                with suppress(google.GoogleAPICallError):  # Spanner deletes a session that is idle for an hour
                    self.client.delete_session(name=created.name, retry=None, timeout=REQUEST_S)

    def change_schema(self, statements: Sequence[str]) -> None:
        """One operation for all statements: each operation takes many seconds. A later statement is not executed if
        an earlier one fails."""
        with translated(self.address, self.info.connection_id):
            operation = self.admin.update_database_ddl(
                database=self.path, statements=list(statements), timeout=REQUEST_S
            )
            operation.result(timeout=SCHEMA_CHANGE_S)

    def partitions(self, table: str, columns: Sequence[str]) -> list[Partition]:
        """The whole table as of now, in parts. Several processes may read them in one multiplexed session, which
        Spanner removes by itself."""
        spanner = self.library
        with translated(self.address, self.info.connection_id):
            request = spanner.CreateSessionRequest(database=self.path, session=spanner.Session(multiplexed=True))
            session = self.client.create_session(request=request, timeout=REQUEST_S).name
            options = spanner.TransactionOptions(read_only=spanner.TransactionOptions.ReadOnly(strong=True))
            found = self.client.partition_read(
                request=spanner.PartitionReadRequest(
                    session=session,
                    transaction=spanner.TransactionSelector(begin=options),
                    table=table,
                    columns=columns,
                    key_set=spanner.KeySet(all_=True),
                ),
                timeout=REQUEST_S,
            )
            return [Partition(session, found.transaction.id, part.partition_token) for part in found.partitions]

    def read_partition(self, part: Partition, table: str, columns: Sequence[str]) -> Iterator[Row]:
        spanner = self.library
        with translated(self.address, self.info.connection_id):
            request = spanner.ReadRequest(
                session=part.session,
                transaction=spanner.TransactionSelector(id=part.transaction),
                table=table,
                columns=columns,
                key_set=spanner.KeySet(all_=True),
                partition_token=part.token,
            )
            yield from _rows(self.client.streaming_read(request=request, timeout=REQUEST_S), len(columns), spanner)

    def _client(self, module: str, client: str, transport: str) -> Any:
        services = load_library(module, "target", "spanner")
        endpoint = google_endpoint(self.info).partition("://")[2] or None
        if self.tls_warnings():
            grpc = load_library("grpc", "target", "spanner")
            transports = load_library(f"{module}.transports", "target", "spanner")
            channel = grpc.insecure_channel(endpoint, options=CHANNEL_OPTIONS)
            return getattr(services, client)(transport=getattr(transports, transport)(channel=channel))
        return getattr(services, client)(
            credentials=self.credentials[0], client_options={"api_endpoint": endpoint} if endpoint else None
        )


CHANNEL_OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


def _rows(results: Iterable[Any], columns: int, spanner: Any) -> Iterator[Row]:
    """``columns``: 0 if the first message names them. The last value of a message may continue in the next one."""
    row, incomplete = Row(), False
    for result in results:
        message = spanner.PartialResultSet.pb(result)
        columns = columns or len(message.metadata.row_type.fields)
        for number, value in enumerate(message.values, 1):
            if incomplete:
                row[-1] = Value(string_value=row[-1].string_value + value.string_value)
            else:
                row.append(value)
            incomplete = message.chunked_value and number == len(message.values)
            if len(row) == columns and not incomplete:
                yield row
                row = []


def _tag(replicator: str, purpose: str) -> str:
    """Spanner takes fifty characters."""
    return f"cdc:{replicator[: TAG_CHARACTERS - 5 - len(purpose)]}:{purpose}"


def _exceptions() -> Any:
    return load_library("google.api_core.exceptions", "target", "spanner")
