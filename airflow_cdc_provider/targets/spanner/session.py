"""Requests in a session: transactions that are repeated when Spanner aborts them, and reads.

Google's client library sends them, one message each. Its own transactions keep sessions and threads of their own, and
repeat a commit whose answer was lost; here the caller finds out what became of it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from google.protobuf.struct_pb2 import Struct, Value

from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.registry import load_library
from airflow_cdc_provider.targets.spanner.options import Priority
from airflow_cdc_provider.targets.spanner.protos import types

R = TypeVar("R")
Row = list[Value]

REQUEST_S = 120
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
    """``client``: of Google's service. ``tag``: of its requests and transactions."""

    client: Any
    name: str
    tag: str
    priority: Priority

    def transact(self, work: Callable[[Transaction], R]) -> R:
        """Commit what ``work`` writes. It is called again if the transaction was aborted or the answer to its commit
        was lost, and must write nothing if its commit is there already."""
        google = exceptions()
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
        request = types.ReadRequest(
            session=self.name,
            table=table,
            columns=columns,
            limit=limit,
            request_options=self._request_options(),
            transaction=selector and types.TransactionSelector(id=selector.id),
        )
        types.ReadRequest.pb(request).key_set.CopyFrom(keys)
        results = self.client.streaming_read(request=request, timeout=REQUEST_S)
        return rows_of(results, len(columns))

    def query(self, sql: str, **parameters: str) -> list[Row]:
        """A query of the newest committed data. ``parameters``: texts, in SQL with ``@`` before the name."""
        request = types.ExecuteSqlRequest(
            session=self.name,
            sql=sql,
            params=Struct(fields={name: Value(string_value=text) for name, text in parameters.items()}),
            param_types={name: types.Type(code=types.TypeCode.STRING) for name in parameters},
            request_options=self._request_options(),
        )
        results = self.client.execute_streaming_sql(request=request, timeout=REQUEST_S)
        return list(rows_of(results, 0))

    def _begin(self) -> Any:
        options = types.TransactionOptions(read_write=types.TransactionOptions.ReadWrite())
        request = types.BeginTransactionRequest(
            session=self.name, options=options, request_options=self._request_options(transaction=True)
        )
        return self.client.begin_transaction(request=request, timeout=REQUEST_S)

    def _commit(self, mutations: Sequence[Any], transaction_id: bytes) -> None:
        request = types.CommitRequest(
            session=self.name,
            transaction_id=transaction_id,
            request_options=self._request_options(transaction=True),
        )
        types.CommitRequest.pb(request).mutations.extend(mutations)
        self.client.commit(request=request, retry=None, timeout=REQUEST_S)

    def _rollback(self, transaction: Transaction) -> None:
        """Releases its locks. Without it they are released when the transaction has been idle for ten seconds."""
        google = exceptions()
        with suppress(google.GoogleAPICallError):  # the error that made it necessary is raised
            self.client.rollback(
                session=self.name, transaction_id=transaction.selector.id, retry=None, timeout=REQUEST_S
            )

    def _request_options(self, transaction: bool = False) -> Any:
        options = types.RequestOptions
        tag = {"transaction_tag": self.tag} if transaction else {"request_tag": self.tag}
        priority = getattr(options.Priority, f"PRIORITY_{self.priority.name}")
        return options(priority=priority, **tag)


def rows_of(results: Iterable[Any], columns: int) -> Iterator[Row]:
    """``columns``: 0 if the first message names them. The last value of a message may continue in the next one."""
    row, incomplete = Row(), False
    for result in results:
        message = types.PartialResultSet.pb(result)
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


def tag(replicator: str, purpose: str) -> str:
    """Spanner takes fifty characters."""
    return f"cdc:{replicator[: TAG_CHARACTERS - 5 - len(purpose)]}:{purpose}"


def exceptions() -> Any:
    return load_library("google.api_core.exceptions", "target", "spanner")
