"""The stand-in for Spanner, read and written by Google's own client."""

from __future__ import annotations

import contextlib
import re
import uuid
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from google.cloud import spanner
from google.cloud.spanner_v1 import TypeCode
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.spec.definition import Target
from airflow_cdc_provider.core.spec.engines import EngineMode
from airflow_cdc_provider.sandbox.spanner import INSTANCE, EmbeddedSpanner
from airflow_cdc_provider.sandbox.spanner.faults import Fault
from airflow_cdc_provider.targets.spanner import merge
from airflow_cdc_provider.targets.spanner.names import CONTROL, CUT, column_name
from spark_jobs.writers import spanner as writer
from tests.spanner_client import open_database
from tests.spark.contract.once import once_at
from tests.spark.contract.sessions import small_session

TABLE = "t"
EVERYTHING = spanner.KeySet(all_=True)
INSERT = re.compile(r"INSERT INTO \S+ VALUES \((.*)\)")
UPDATE = re.compile(r"UPDATE \S+ SET (\w+) = '(\w*)'(?: WHERE id = (\d+))?")
DELETE = re.compile(r"DELETE FROM \S+(?: WHERE id = (\d+))?")
COLUMNS = (
    "SELECT column_name FROM information_schema.columns WHERE table_schema = '' AND LOWER(table_name) = LOWER(@table)"
)


class SpannerKit:
    engine = EngineMode.AUTO
    kind = "spanner"
    jars: tuple[str, ...] = ()
    keeps_versions = False
    keeps_cuts = True
    chores: frozenset[str] = frozenset()
    has_odd_numbers = keeps_zeros_apart = True
    before_commit = "merge.before_submit"

    def __init__(self, spark: SparkSession, server: EmbeddedSpanner, database: str, options: Mapping[str, Any]) -> None:
        self.server = server
        self.database = open_database(server.port, database)
        self.target = Target(
            "spanner", connection="warehouse", options={"instance": INSTANCE, "database": database, **options}
        )
        self.secrets = Secrets(target=server.connection)
        self.session = small_session(spark)

    def rows(self, *columns: str, table: str = TABLE, at: datetime | None = None) -> list[tuple[Any, ...]]:
        names = [column_name(name) for name in columns]
        with self.database.snapshot(read_timestamp=at) as snapshot:
            results = snapshot.read(table, names, EVERYTHING)
            rows = list(results)
            binary = [field.type_.code == TypeCode.BYTES for field in results.fields]
        return [tuple(map(_plain, row, binary)) for row in rows]

    def write(self, statement: str) -> None:
        """The few statements of the suite, as mutations."""
        if insert := INSERT.fullmatch(statement):
            values = [int(one) if one.isdigit() else one.strip("' ") for one in insert[1].split(", ")]
            self._batch(lambda batch: batch.insert(TABLE, self._columns(), [values]))
        elif update := UPDATE.fullmatch(statement):
            ids = [int(update[3])] if update[3] else [key for (key,) in self.rows("id")]
            rows = [[key, update[2]] for key in ids]
            self._batch(lambda batch: batch.update(TABLE, ["id", column_name(update[1])], rows))
        else:
            delete = DELETE.fullmatch(statement)
            assert delete, statement
            keys = spanner.KeySet(keys=[[int(delete[1])]]) if delete[1] else EVERYTHING
            self._batch(lambda batch: batch.delete(TABLE, keys))

    def remove(self, table: str, **key: int | str) -> None:
        self._batch(lambda batch: batch.delete(table, spanner.KeySet(keys=[list(key.values())])))

    def cut(self, *columns: str) -> tuple[int, list[tuple[Any, ...]]] | None:
        """Rows are read as of the time of the cut."""
        cuts = self.rows("replicator", "cut_window", "read_at", table=CUT)
        return next(((window, self.rows(*columns, at=at)) for name, window, at in cuts if name == "hand"), None)

    def compact(self) -> None:
        """Spanner has no such command."""

    def version(self) -> dict[str, tuple[list[str], list[tuple[Any, ...]]]]:
        """A backup of rows and cursors: columns and rows of each table."""
        columns = {table: self._columns(table) for table in (TABLE, CONTROL)}
        return {table: (names, self.rows(*names, table=table)) for table, names in columns.items()}

    def restore(self, version: dict[str, tuple[list[str], list[tuple[Any, ...]]]]) -> None:
        for table, (columns, rows) in version.items():
            self._batch(lambda batch, table=table: batch.delete(table, EVERYTHING))
            self._batch(lambda batch, t=table, c=columns, r=rows: batch.insert(t, c, r))

    def drop(self) -> None:
        self.database.update_ddl([f"DROP TABLE {TABLE}"]).result()

    def create(self) -> None:
        self.database.update_ddl([f"CREATE TABLE {TABLE} (id INT64) PRIMARY KEY (id)"]).result()

    def meanwhile(self, monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
        monkeypatch.setattr(writer, "failpoint", once_at(self.before_commit, action))

    @contextlib.contextmanager
    def lose(self, reply: bool) -> Iterator[None]:
        def arm() -> None:
            self.server.arm(Fault.ANSWER if reply else Fault.REQUEST)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(merge, "failpoint", once_at("merge.before_commit", arm))
            yield

    def _columns(self, table: str = TABLE) -> list[str]:
        with self.database.snapshot() as snapshot:
            kinds = {"table": spanner.param_types.STRING}
            return [name for (name,) in snapshot.execute_sql(COLUMNS, {"table": table}, kinds)]

    def _batch(self, work: Callable[[Any], object]) -> None:
        with self.database.batch() as batch:
            work(batch)


def _plain(value: Any, binary: bool) -> Any:
    """The client returns bytes as they are transferred."""
    return b64decode(value) if binary and value is not None else value


@contextlib.contextmanager
def spanner_kit(spark: SparkSession, _: Path, fixture: Callable[[str], Any], **options: Any) -> Iterator[SpannerKit]:
    kit = SpannerKit(spark, fixture("spanner_server"), f"k{uuid.uuid4().hex[:20]}", options)
    try:
        yield kit
    finally:
        kit.database.drop()
