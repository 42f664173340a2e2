"""The requests of Google's Spanner service."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

from google.cloud import spanner_v1
from google.protobuf.empty_pb2 import Empty
from google.protobuf.struct_pb2 import Value
from google.rpc.code_pb2 import Code

from airflow_cdc_provider.sandbox.spanner import limits
from airflow_cdc_provider.sandbox.spanner.databases import Databases
from airflow_cdc_provider.sandbox.spanner.errors import Refused, aborted, invalid
from airflow_cdc_provider.sandbox.spanner.faults import Fault, Faults
from airflow_cdc_provider.sandbox.spanner.queries import answer
from airflow_cdc_provider.sandbox.spanner.results import metadata, partial_results
from airflow_cdc_provider.sandbox.spanner.sessions import OpenSession, Selected, Sessions
from airflow_cdc_provider.sandbox.spanner.storage import Range
from airflow_cdc_provider.sandbox.spanner.values import as_value

PARTITIONS = 3
types = spanner_v1.types

Session, Transaction, CommitResponse, PartitionResponse, BatchCreateSessionsResponse = (
    kind.pb()
    for kind in (
        spanner_v1.Session,
        spanner_v1.Transaction,
        spanner_v1.CommitResponse,
        spanner_v1.PartitionResponse,
        spanner_v1.BatchCreateSessionsResponse,
    )
)


class SpannerService:
    """The methods are those of the service, by their names. They raise Refused."""

    def __init__(self, databases: Databases, faults: Faults) -> None:
        self._databases, self._faults = databases, faults
        self._sessions = Sessions()
        self._tokens = itertools.count(1)
        self._parts: dict[bytes, Range] = {}

    def CreateSession(self, request: Any) -> Any:
        database = self._databases.get(request.database)
        return _described(self._sessions.create(database, request.session.multiplexed))

    def BatchCreateSessions(self, request: Any) -> Any:
        database = self._databases.get(request.database)
        made = [self._sessions.create(database, multiplexed=False) for _ in range(request.session_count)]
        return BatchCreateSessionsResponse(session=map(_described, made))

    def GetSession(self, request: Any) -> Any:
        return _described(self._sessions.get(request.name))

    def DeleteSession(self, request: Any) -> Any:
        self._sessions.delete(request.name)
        return Empty()

    def BeginTransaction(self, request: Any) -> Any:
        session = self._sessions.get(request.session)
        number, time = self._sessions.begin(session, request.options)
        begun = Transaction(id=number)
        if time is not None and request.options.read_only.return_read_timestamp:
            begun.read_timestamp.FromMicroseconds(time)
        self._add_precommit_token(session, begun.precommit_token, time is None)
        return begun

    def Commit(self, request: Any) -> Any:
        session = self._sessions.get(request.session)
        transaction = session.transactions.get(request.transaction_id)
        if request.WhichOneof("transaction") == "single_use_transaction":
            number, _ = self._sessions.begin(session, request.single_use_transaction)
            transaction = session.transactions[number]
        if transaction is None or isinstance(transaction, int):
            raise invalid("A commit needs a read-write transaction.")
        fault = self._faults.take(Fault.REQUEST, Fault.ANSWER, Fault.ABORT)
        if fault is Fault.ABORT:
            raise aborted("Transaction was aborted.")
        if fault is Fault.REQUEST:
            raise Refused(Code.UNAVAILABLE, "the request was lost")
        time = session.database.commit(request.mutations, transaction)
        if fault is Fault.ANSWER:
            raise Refused(Code.UNAVAILABLE, "the answer was lost")
        response = CommitResponse()
        response.commit_timestamp.FromMicroseconds(time)
        return response

    def Rollback(self, request: Any) -> Any:
        self._sessions.get(request.session).transactions.pop(request.transaction_id, None)
        return Empty()

    def StreamingRead(self, request: Any) -> Iterator[Any]:
        _require_small(request)
        session = self._sessions.get(request.session)
        selected = self._sessions.select(session, request.transaction)
        database, columns = session.database, list(request.columns)
        if request.partition_token:
            table, rows = database.scan(request.table, self._partition(request.partition_token), selected.time)
        else:
            table, rows = database.read(request.table, columns, request.key_set, selected.time, selected.transaction)
        found = itertools.islice(rows, request.limit or None)
        names = [table.column(name).name for name in columns]
        values = ([as_value(row.get(name)) for name in names] for row in found)
        yield from self._results(session, selected, {name: table.column(name) for name in names}, values)

    def ExecuteStreamingSql(self, request: Any) -> Iterator[Any]:
        _require_small(request)
        session = self._sessions.get(request.session)
        selected = self._sessions.select(session, request.transaction)
        if selected.transaction is not None:
            raise invalid("Queries of the information schema are not allowed in a read-write transaction.")
        parameters = {name: value.string_value for name, value in request.params.fields.items()}
        result = answer(session.database, request.sql, parameters, selected.time)
        values = ([as_value(one) for one in row] for row in result.rows)
        yield from self._results(session, selected, result.columns, values)

    def PartitionRead(self, request: Any) -> Any:
        session = self._sessions.get(request.session)
        selected = self._sessions.select(session, request.transaction)
        if selected.transaction is not None:
            raise invalid("A partitioned read needs a read-only transaction.")
        response = PartitionResponse()
        response.transaction.id = selected.begun or request.transaction.id
        for part in session.database.splits(request.table, PARTITIONS):
            response.partitions.add(partition_token=self._token(part))
        return response

    def _results(
        self, session: OpenSession, selected: Selected, columns: Any, values: Iterator[list[Value]]
    ) -> Iterator[Any]:
        for number, message in enumerate(partial_results(metadata(columns, selected.begun), values)):
            if number == 0:
                self._add_precommit_token(session, message.precommit_token, selected.transaction is not None)
            yield message

    def _add_precommit_token(self, session: OpenSession, token: Any, is_read_write: bool) -> None:
        """Google's client returns the newest one with its commit, on multiplexed sessions."""
        if session.multiplexed and is_read_write:
            token.precommit_token, token.seq_num = b"token", next(self._tokens)

    def _token(self, part: Range) -> bytes:
        token = json.dumps(len(self._parts)).encode()
        self._parts[token] = part
        return token

    def _partition(self, token: bytes) -> Range:
        if token not in self._parts:
            raise invalid("unknown partition token")
        return self._parts[token]


def _described(session: OpenSession) -> Any:
    return Session(name=session.name, multiplexed=session.multiplexed)


def _require_small(request: Any) -> None:
    if request.ByteSize() > limits.REQUEST_BYTES:
        raise invalid(f"The request exceeds {limits.REQUEST_BYTES} bytes.")
