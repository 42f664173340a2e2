"""Whole copies on every target: the first one, one over a table of ours, every type; and upkeep after them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from airflow_cdc_provider.core.definition import OnDelete
from airflow_cdc_provider.core.errors import Fenced, ForeignTarget
from airflow_cdc_provider.core.states import TableState
from airflow_cdc_provider.core.steps import Outcome, StepKind
from airflow_cdc_provider.core.tables import Column, Kind, LogicalType, TableSchema
from spark_jobs.writers import open_writer
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import TargetKit
from tests.spark.hand_made import Row

pytestmark = pytest.mark.jvm

INT, TEXT = LogicalType(Kind.INT32), LogicalType(Kind.TEXT)
ID = Column("id", INT, nullable=False)


def schema(*columns: Column, key: tuple[str, ...] = ("id",)) -> TableSchema:
    return TableSchema("public.t", (ID, *columns), key)


EVERY_TYPE: dict[str, tuple[LogicalType, object, object]] = {
    "boolean": (LogicalType(Kind.BOOLEAN), True, True),
    "int16": (LogicalType(Kind.INT16), -32768, -32768),
    "int32": (LogicalType(Kind.INT32), 2147483647, 2147483647),
    "int64": (LogicalType(Kind.INT64), -9223372036854775808, -9223372036854775808),
    "float32": (LogicalType(Kind.FLOAT32), 0.5, 0.5),
    "float64": (LogicalType(Kind.FLOAT64), -1.5e300, -1.5e300),
    "decimal": (LogicalType(Kind.DECIMAL, 38, 9), "12345678901234567890123456789.123456789", None),
    "text": (TEXT, "naïve 'quoted' \\ \u2028 💾", "naïve 'quoted' \\ \u2028 💾"),
    "json": (LogicalType(Kind.JSON), '{"a": [1, null]}', '{"a": [1, null]}'),
    "uuid": (LogicalType(Kind.UUID), "6f1b9d0e-0000-4000-8000-000000000001", "6f1b9d0e-0000-4000-8000-000000000001"),
    "bytes": (LogicalType(Kind.BYTES), "AAH/", b"\x00\x01\xff"),
    "date": (LogicalType(Kind.DATE), "1969-12-31", date(1969, 12, 31)),
    "timestamp": (
        LogicalType(Kind.TIMESTAMP),
        "2026-03-29T02:30:00.000001",
        datetime(2026, 3, 29, 2, 30, 0, 1),
    ),
    "timestamptz": (
        LogicalType(Kind.TIMESTAMPTZ),
        "2026-03-29T02:30:00.999999Z",
        datetime(2026, 3, 29, 2, 30, 0, 999999, UTC),
    ),
    "with space, comma; and (brackets)": (TEXT, "named", "named"),
}


def test_every_type_arrives_as_it_was_by_change_and_null_stays_null(kit: TargetKit, tmp_path: Path) -> None:
    columns = tuple(Column(name, kind) for name, (kind, _, _) in EVERY_TYPE.items())
    table = KitTable(kit, tmp_path, schema(*columns))
    nothing: Row = {"id": 0, **dict.fromkeys(EVERY_TYPE)}
    table.copy([nothing])
    full = {"id": 1, **{name: value for name, (_, value, _) in EVERY_TYPE.items()}}
    result = table.apply([table.insert(full), table.update({**full, "id": 0})])
    assert result.outcome is Outcome.DONE, result.problem
    table.apply([table.update(nothing)])
    found = {row[0]: dict(zip(EVERY_TYPE, row[1:], strict=True)) for row in table.rows()}
    assert set(found[0].values()) == {None}
    wanted = {name: value for name, (_, _, value) in EVERY_TYPE.items()}
    wanted["decimal"] = Decimal("12345678901234567890123456789.123456789")
    assert found[1] == wanted


def test_an_empty_copy_is_a_table_that_takes_changes(kit: TargetKit, tmp_path: Path) -> None:
    table = KitTable(kit, tmp_path, schema(Column("v", TEXT)))
    table.copy([])
    assert table.rows() == [] and table.held().control is not None
    assert table.apply([table.insert({"id": 1, "v": "a"})]).outcome is Outcome.DONE
    assert table.rows() == [(1, "a")]


def test_a_copy_over_a_table_replaces_rows_columns_and_cursor_at_once(kit: TargetKit, tmp_path: Path) -> None:
    """One column goes, one comes, one changes its type, and the flag of soft deletes comes, too."""
    table = KitTable(kit, tmp_path, schema(Column("v", TEXT), Column("gone", TEXT), Column("n", TEXT)))
    table.copy([{"id": 1, "v": "a", "gone": "x", "n": "1"}, {"id": 2, "v": "b", "gone": "y", "n": "2"}])
    table.apply([table.insert({"id": 3, "v": "c", "gone": "z", "n": "3"})])
    before = table.held()
    other = KitTable(kit, tmp_path, schema(Column("v", TEXT), Column("n", INT), Column("new", TEXT)), OnDelete.SOFT)
    other.window, other.order = table.window, table.order
    other.copy([{"id": 2, "v": "B", "n": 22, "new": "p"}, {"id": 4, "v": "d", "n": 44, "new": None}])
    held = other.held()
    assert held.identity == before.identity and held.control is not None and before.control is not None
    assert held.control.window == 1 and held.control.fence > before.control.fence
    assert other.rows("_cdc_deleted") == [(2, "B", 22, "p", False), (4, "d", 44, None, False)]
    assert set(other.read_at(None).columns) == {"id", "v", "n", "new", "_cdc_order", "_cdc_deleted"}
    seen = other.read_at(held.version)
    assert set(seen.columns) == set(other.read_at(None).columns) and seen.count() == 2
    assert other.apply([other.update({"id": 4, "v": "D", "n": 45, "new": "q"})]).outcome is Outcome.DONE
    assert other.rows() == [(2, "B", 22, "p"), (4, "D", 45, "q")]


def test_a_copy_over_a_table_of_somebody_else_is_refused(kit: TargetKit, tmp_path: Path) -> None:
    table = KitTable(kit, tmp_path, schema(Column("v", TEXT)))
    kit.create()
    with pytest.raises(ForeignTarget, match="TGT012"):
        table.copy([{"id": 1, "v": "a"}])


def test_a_copy_under_a_fence_that_is_taken_is_refused(kit: TargetKit, tmp_path: Path) -> None:
    table = KitTable(kit, tmp_path, schema(Column("v", TEXT)))
    table.copy([{"id": 1, "v": "a"}])
    held = table.held()
    assert held.control is not None
    writer = open_writer(kit.kind, kit.session, table.job(StepKind.SNAPSHOT, ()).tables)
    frame = writer.read(table.task(), None)
    with pytest.raises(Fenced, match="TGT030"):
        writer.copy(table.task(), frame, held.control)
    assert table.rows() == [(1, "a")]


def test_upkeep_leaves_rows_and_cursor_and_every_tenth_window_asks_for_it(kit: TargetKit, tmp_path: Path) -> None:
    """Half of the rows are deleted, so the figures ask for it."""
    table = KitTable(kit, tmp_path, schema(Column("v", TEXT)))
    table.copy([{"id": key, "v": "a"} for key in range(40)])
    for _ in range(8):
        table.land()
    table.apply([table.delete({"id": key}) for key in range(0, 40, 2)])
    before = table.held()
    result = table.apply([table.update({"id": 31, "v": "b"})])
    assert result.outcome is Outcome.DONE and result.window == 10
    kept_up = table.held()
    assert result.detail.get("upkeep") in ("purge", "compact"), result.detail
    assert kept_up.control is not None and kept_up.control.window == 10 and not kept_up.restored
    assert kept_up.identity == before.identity
    assert len(table.rows()) == 20 and (31, "b") in table.rows()
    writer = open_writer(kit.kind, kit.session, table.job(StepKind.SNAPSHOT, ()).tables)
    assert writer.maintain(table.task(), timedelta(days=7)) == ()
    assert table.apply([table.update({"id": 33, "v": "c"})]).outcome is Outcome.DONE


def test_a_table_that_is_resyncing_takes_a_copy_and_shows_the_old_rows_until_then(
    kit: TargetKit, tmp_path: Path
) -> None:
    table = KitTable(kit, tmp_path, schema(Column("v", TEXT)))
    table.copy([{"id": 1, "v": "a"}])
    before = table.held()
    table.copy([{"id": 1, "v": "A"}], TableState.RESYNCING)
    assert table.rows() == [(1, "A")]
    assert table.read_at(before.version).collect()[0]["v"] == "a"
    control = table.held().control
    assert control is not None and control.state.name is TableState.RESYNCING
