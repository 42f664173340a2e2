"""Every type has the same canonical value from a change table and from a copy."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from airflow_cdc_provider.connectors.sources.sqlserver.row_images import RowChange, RowReader
from airflow_cdc_provider.connectors.sources.sqlserver.types import KINDS, SqlColumn
from airflow_cdc_provider.core.errors import BadRecordFound, CheckFailed
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.spec.definition import Columns, OnUnrepresentable
from tests.connectors.sqlserver_database import Shop, apply, image, records
from tests.simulators.sqlserver.tables import Col

COLUMNS = {
    "flag": "bit", "t": "tinyint", "s": "smallint", "i": "int", "b": "bigint", "d": "decimal(38,9)",
    "n": "numeric(5,0)", "m": "money", "sm": "smallmoney", "f": "float(53)", "r": "real", "day": "date",
    "tm": "time(7)", "tm0": "time(0)", "sd": "smalldatetime", "dt": "datetime", "dt0": "datetime2(0)",
    "dt7": "datetime2(7)", "off": "datetimeoffset(7)", "off3": "datetimeoffset(3)", "c": "char(5)",
    "vc": "varchar(8000)", "vm": "varchar(max)", "tx": "text", "nc": "nchar(3)", "nv": "nvarchar(20)",
    "nm": "nvarchar(max)", "nt": "ntext", "x": "xml", "h": "hierarchyid", "u": "uniqueidentifier", "bi": "binary(3)",
    "vb": "varbinary(9)", "bm": "varbinary(max)", "im": "image", "rv": "timestamp", "g": "geometry", "gg": "geography",
}  # fmt: skip
VALUES: dict[str, Any] = {
    "flag": True, "t": 255, "s": -32768, "i": 2147483647, "b": -9223372036854775808,
    "d": Decimal("-12345678901234567890123456789.123456789"), "n": Decimal("99999"),
    "m": Decimal("-922337203685477.5808"), "sm": Decimal("214748.3647"), "f": -1e300, "r": 0.5, "day": "0001-01-01",
    "tm": "23:59:59.9999999", "tm0": "00:00:00", "sd": "2079-06-06 23:59:00.000", "dt": "9999-12-31 23:59:59.997",
    "dt0": "0001-01-01 00:00:00", "dt7": "2024-02-29 12:34:56.1234560", "off": "2024-02-29 12:34:56.1234567 +14:00",
    "off3": "0001-01-02 00:00:00.120 +13:59", "c": "ab   ", "vc": "é€", "vm": "x" * 5000, "tx": 'a "b" \n',
    "nc": "☃  ", "nv": "😀\0", "nm": "ü", "nt": "日本", "x": "<a b=\"1\"/>", "h": "/1/2.5/",
    "u": UUID("6b1b36cb-05a4-4d6a-a2f2-6b8a4f2a0c11"), "bi": b"\0\1\2", "vb": b"\0\xff", "bm": b"", "im": b"\xfe",
    "rv": b"\0\0\0\0\0\0\7\xd1", "g": b"\0\1", "gg": b"\xe6\x10",
}  # fmt: skip
CANONICAL = {
    "flag": True, "t": 255, "d": "-12345678901234567890123456789.123456789", "m": "-922337203685477.5808",
    "sm": "214748.3647", "f": -1e300, "day": "0001-01-01", "tm": "23:59:59.9999999", "tm0": "00:00:00",
    "sd": "2079-06-06T23:59:00", "dt": "9999-12-31T23:59:59.997000", "dt0": "0001-01-01T00:00:00",
    "dt7": "2024-02-29T12:34:56.123456", "off": "2024-02-28T22:34:56.123456Z", "off3": "0001-01-01T10:01:00.120000Z",
    "c": "ab   ", "vc": "é€", "nc": "☃  ", "nv": "😀\0", "nt": "日本", "h": "/1/2.5/",
    "u": "6b1b36cb-05a4-4d6a-a2f2-6b8a4f2a0c11", "bi": "AAEC", "bm": "", "im": "/g==", "rv": "AAAAAAAAB9E=",
}  # fmt: skip


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_every_type_is_the_same_from_a_change_table_and_a_copy(shop: Shop) -> None:
    assert {kind.partition("(")[0] for kind in COLUMNS.values()} == KINDS.keys(), "every type that can be copied"
    wide = shop.table("dbo.wide", Col("id", "int", False), *(Col(name, kind) for name, kind in COLUMNS.items()))
    task = shop.task("dbo.wide")
    shop.insert(wide, {"id": 1, **VALUES}, {"id": 2})
    shop.update(wide, 2, **VALUES)
    shop.update(wide, 1, **dict.fromkeys(VALUES))
    changes = records(shop.window(task))
    assert {name: image(changes[0])[name] for name in CANONICAL} == CANONICAL
    streamed: dict[str, dict[str, Any]] = {}
    apply(streamed, changes, task.schema)
    copied = shop.truth(task)
    assert streamed == copied and set(copied["[1]"].values()) == {1, None}
    assert {name: copied["[2]"][name] for name in CANONICAL} == CANONICAL


def test_a_number_that_no_column_may_lack_keeps_its_digits_in_the_key(shop: Shop) -> None:
    table = shop.table("dbo.t", Col("id", "decimal(38,0)", False), Col("f", "float(53)", False), key=("id", "f"))
    shop.insert(table, {"id": Decimal("9" * 38), "f": -0.0})
    task = shop.task("dbo.t")
    (change,) = records(shop.window(task))
    assert change.key == f'["{"9" * 38}",0.0]' and list(shop.truth(task)) == [change.key]


def test_an_update_that_changes_only_the_sign_of_a_zero_has_two_images(shop: Shop) -> None:
    """Of the decoder alone: SQLite stores no -0.0."""
    shop.table("dbo.t", Col("id", "int", False), Col("f", "float(53)"))
    task = shop.task("dbo.t")
    reader = RowReader(task, [SqlColumn(1, "id", "int"), SqlColumn(2, "f", "float")], task.schema)
    row = reader.read(RowChange([1, 0.0], [1, -0.0]))
    assert row is not None and (row.before, row.after) == ('{"id":1,"f":0.0}', '{"id":1,"f":-0.0}')


def test_digits_below_a_microsecond_are_cut_with_a_warning_and_kept_by_a_cast(shop: Shop) -> None:
    table = shop.table("dbo.t", Col("id", "int", False), Col("at", "datetime2(7)"), Col("off", "datetimeoffset(7)"))
    shop.insert(table, {"id": 1, "at": "2026-01-02 03:04:05.1234567", "off": "2026-01-02 03:04:05.0000001 +00:00"})
    shop.insert(table, {"id": 2, "at": "2026-01-02 03:04:05.1234560"})
    task = shop.task("dbo.t")
    cut, whole = records(shop.window(task))
    assert cut.warnings == ("nanoseconds_cut",) and image(cut)["at"] == "2026-01-02T03:04:05.123456"
    assert image(cut)["off"] == "2026-01-02T03:04:05Z" and whole.warnings == ()
    cast = shop.task("dbo.t", columns=Columns(cast={"at": "text", "off": "text"}))
    shop.update(table, 1, off=None)
    (change,) = records(shop.window(cast))
    assert image(change)["at"] == "2026-01-02 03:04:05.1234567"
    assert shop.truth(cast)["[1]"] == image(change) and shop.truth(task)["[1]"]["at"] == "2026-01-02T03:04:05.123456"


def test_digits_below_a_microsecond_in_a_key_are_a_bad_record_and_stop_a_copy(shop: Shop) -> None:
    table = shop.table("dbo.t", Col("at", "datetime2(7)", False), Col("n", "int"), key=("at",))
    task = shop.task("dbo.t")
    shop.insert(table, {"at": "2026-01-02 03:04:05.1234560", "n": 1}, {"at": "2026-01-02 03:04:05.1234567", "n": 2})
    good, bad = records(shop.window(task))
    assert good.key == '["2026-01-02T03:04:05.123456"]' and (bad.op, bad.key) == (Operation.UNREADABLE, None)
    assert "a time with digits below a microsecond" in (bad.after or "") and "1234567" not in str(bad.after)[:200]
    with pytest.raises(BadRecordFound, match="CPY009"):
        shop.truth(task)
    cast = shop.task("dbo.t", columns=Columns(cast={"at": "text"}))
    (read,) = shop.source.reread(bad, cast, cast.schema)
    assert (read.op, read.key) == ("insert", '["2026-01-02 03:04:05.1234567"]')
    assert set(shop.truth(cast)) == {'["2026-01-02 03:04:05.1234560"]', '["2026-01-02 03:04:05.1234567"]'}


def test_texts_of_unrepresentable_values_have_columns_that_stay_null(shop: Shop) -> None:
    table = shop.table("dbo.t", Col("id", "int", False), Col("day", "date"))
    shop.insert(table, {"id": 1, "day": "9999-12-31"})
    task = shop.task("dbo.t", on_unrepresentable=OnUnrepresentable.SET_NULL)
    (change,) = records(shop.window(task))
    assert image(change) == {"id": 1, "day": "9999-12-31", "_cdc_text_day": None} == shop.truth(task)["[1]"]


@pytest.mark.parametrize("kind", ["sql_variant"])
def test_a_column_of_another_type_is_refused_unless_it_is_left_out(shop: Shop, kind: str) -> None:
    table = shop.table("dbo.t", Col("id", "int", False), Col("odd", kind))
    shop.insert(table, {"id": 1, "odd": "x"})
    with pytest.raises(CheckFailed, match="SRC118"):
        shop.copied(shop.task("dbo.t"))
    task = shop.task("dbo.t", columns=Columns(exclude=("odd",)))
    (change,) = records(shop.window(task))
    assert image(change) == {"id": 1} == shop.truth(task)["[1]"]


def test_computed_columns_are_not_copied(shop: Shop) -> None:
    table = shop.table(
        "dbo.t", Col("id", "int", False), Col("twice", "int", computed=lambda row: row["id"] * 2), Col("n", "int")
    )
    shop.insert(table, {"id": 1, "n": 3})
    task = shop.task("dbo.t")
    (change,) = records(shop.window(task))
    assert image(change) == {"id": 1, "n": 3} == shop.truth(task)["[1]"]


def test_keys_that_the_collation_treats_as_equal_are_one_row_in_its_present_spelling(shop: Shop) -> None:
    table = shop.table("dbo.t", Col("id", "nvarchar(9)", False), Col("n", "int"))
    task = shop.task("dbo.t")
    shop.insert(table, {"id": "a", "n": 1})
    with shop.engine.transaction() as transaction:
        transaction.update(table, lambda _row: True, lambda _row: {"id": "A "})
    with pytest.raises(AssertionError, match="equal keys"):
        shop.insert(table, {"id": "a"})
    inserted, departed, arrived = changes = records(shop.window(task))
    assert (inserted.key, departed.key_before, arrived.key) == ('["a"]', '["a"]', '["A "]')
    assert departed.link_id == arrived.link_id
    rows: dict[str, dict[str, Any]] = {}
    apply(rows, changes, task.schema)
    assert rows == {'["A "]': {"id": "A ", "n": 1}} == shop.truth(task)
