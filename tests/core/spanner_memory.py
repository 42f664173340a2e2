"""The stand-in's database in this process, with the requests of the product's session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from google.protobuf.struct_pb2 import Value
from google.rpc.code_pb2 import Code

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.sandbox.spanner.clock import Clock
from airflow_cdc_provider.sandbox.spanner.database import Database, ReadWrite
from airflow_cdc_provider.sandbox.spanner.errors import Refused
from airflow_cdc_provider.sandbox.spanner.queries import answer
from airflow_cdc_provider.sandbox.spanner.values import as_value
from airflow_cdc_provider.targets.spanner import mutations
from airflow_cdc_provider.targets.spanner.database import SpannerDatabase
from airflow_cdc_provider.targets.spanner.options import SpannerOptions
from airflow_cdc_provider.targets.spanner.own_tables import create_own_tables
from airflow_cdc_provider.targets.spanner.values import text_of

R = TypeVar("R")
Row = list[Value]


@dataclass
class MemoryTransaction:
    session: MemorySession
    inner: ReadWrite
    written: list[Any]

    def read(self, table: str, columns: Sequence[str], keys: Any, limit: int = 0) -> Iterator[Row]:
        return self.session.rows(table, columns, keys, limit, self.inner)

    def write(self, *more: Any) -> None:
        self.written.extend(more)


class MemorySession:
    """A stand-in for ``Session``: requests without gRPC. ``commits``: the mutations of each commit."""

    def __init__(self) -> None:
        self.database = Database("memory", Clock())
        self.database.change_schema(create_own_tables())
        self.commits: list[list[Any]] = []

    def transact(self, work: Callable[[MemoryTransaction], R]) -> R:
        while True:
            transaction = MemoryTransaction(self, ReadWrite(), [])
            result = work(transaction)
            try:
                self.database.commit(transaction.written, transaction.inner)
            except Refused as refused:
                if refused.code == Code.ABORTED:
                    continue
                raise
            self.commits.append(transaction.written)
            return result

    def write(self, written: Sequence[Any]) -> None:
        self.transact(lambda transaction: transaction.write(*written))

    def read(self, table: str, columns: Sequence[str], keys: Any, limit: int = 0) -> Iterator[Row]:
        return self.rows(table, columns, keys, limit, None)

    def query(self, sql: str, **parameters: str) -> list[Row]:
        return [list(map(as_value, row)) for row in answer(self.database, sql, parameters, self.database.now()).rows]

    def rows(
        self, table: str, columns: Sequence[str], keys: Any, limit: int, transaction: ReadWrite | None
    ) -> Iterator[Row]:
        _, found = self.database.read(table, columns, keys, self.database.now(), transaction)
        for number, row in enumerate(found):
            if limit and number == limit:
                return
            yield [as_value(row.get(name)) for name in columns]

    def all_rows(self, table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        found = self.read(table, columns, mutations.all_keys())
        return [tuple(map(text_of, row)) for row in found]


class MemoryDatabase(SpannerDatabase):
    """With the schema changes of a session's database, and this session for everyone."""

    @classmethod
    def of(cls, session: MemorySession, **options: Any) -> MemoryDatabase:
        made = cls(ConnectionInfo(), SpannerOptions("i", "d", **options), "shop")
        made.__dict__["memory"] = session
        return made

    @contextmanager
    def session(self, purpose: str) -> Iterator[Any]:
        yield self.__dict__["memory"]

    def change_schema(self, statements: Sequence[str]) -> None:
        self.__dict__["memory"].database.change_schema(statements)
