"""Equal sums in source and target, without which a figure does not count."""

from __future__ import annotations

import contextlib
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.catalog.sql import SqlCatalog

from tests.bench.rig import Rig
from tests.spark.replicator import Replicator

SUMS = "count(*), sum(id), sum(customer_id), sum(total), sum(tax), count(distinct note), count(payload), max(placed_at)"


def must_be_identical(rig: Rig, database: str, replicator: Replicator, table: str = "items") -> None:
    target = replicator.definition.target
    copied = (
        of_iceberg(Path(target.location), table)
        if target.type == "iceberg"
        else of_delta(replicator.target.locate(table))
    )
    must_be_equal(of_source(rig, database, table), copied)


def must_be_equal(source: list[str], copied: list[str]) -> None:
    assert source == copied, (source, copied)


def of_source(rig: Rig, database: str, table: str = "items") -> list[str]:
    with psycopg.connect(rig.server.dsn(database)) as connection:
        return _texts(connection.execute(f"select {SUMS} from {table}".encode()).fetchone() or ())


def of_delta(location: str) -> list[str]:
    answer = QueryBuilder().register("items", DeltaTable(location)).execute(f"select {SUMS} from items").read_all()
    return _texts(tuple(pa.table(answer).to_pylist()[0].values()))


def of_iceberg(lake: Path, table: str) -> list[str]:
    with contextlib.closing(SqlCatalog("lake", uri=f"sqlite:///{lake}/catalog.db")) as catalog:
        rows = catalog.load_table(f"cdc.{table}").scan().to_arrow()
    sums = [pc.sum(rows[name]).as_py() for name in ("id", "customer_id", "total", "tax")]
    counts = [pc.count_distinct(rows["note"]).as_py(), pc.count(rows["payload"]).as_py()]
    return _texts((rows.num_rows, *sums, *counts, pc.max(rows["placed_at"]).as_py()))


def _texts(values: tuple[object, ...]) -> list[str]:
    """Times to the second: systems write time zones differently."""
    return [str(value)[:19] for value in values]
