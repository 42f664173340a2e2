"""Rows of change tables that real servers wrote, as their users published them, and the simulator's rows for the same
statements."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.connectors.sqlserver_database import Shop, image, records
from tests.simulators.sqlserver.dialect import parted, quoted, stored
from tests.simulators.sqlserver.tables import Col, Row, Table

ChangeRow = tuple[str, str, int, str, Row, int]
"""``__$start_lsn``, ``__$seqval``, ``__$operation``, ``__$update_mask``, the row, ``__$command_id``. ``__$end_lsn`` is
always NULL."""


@dataclass(frozen=True)
class Recording:
    """``wanted``: the operation and the row after it, of each record. ``before``: rows that are older than the
    recording."""

    columns: tuple[Col, ...]
    key: str
    rows: tuple[ChangeRow, ...]
    wanted: tuple[tuple[str, Row], ...]
    before: tuple[Row, ...] = ()


def customer(last_name: str) -> Row:
    return {"id": 1005, "first_name": "AnnA", "last_name": last_name, "email": "annAP@noanswer.org"}


def employee(number: int, first: str, middle: str, last: str) -> Row:
    return {"Id": number, "FirstName": first, "MiddleName": middle, "LastName": last, "DesignationId": 1}


NAME = "nvarchar(50)"
RECORDINGS = {
    "an insert and an update": Recording(
        (
            Col("id", "int", nullable=False),
            Col("first_name", "varchar(255)", nullable=False),
            Col("last_name", "varchar(255)", nullable=False),
            Col("email", "varchar(255)", nullable=False),
        ),
        "id",
        (
            ("0000002A000003B00005", "0000002A000003B00003", 2, "0F", customer("POurshikin"), 1),
            ("0000002A00000D350003", "0000002A00000D350002", 3, "04", customer("POurshikin"), 1),
            ("0000002A00000D350003", "0000002A00000D350002", 4, "04", customer("Poushkin"), 1),
        ),
        (("insert", customer("POurshikin")), ("update", customer("Poushkin"))),
    ),
    "an update of two columns of an older row": Recording(
        (
            Col("Id", "int", nullable=False),
            Col("FirstName", NAME, nullable=False),
            Col("MiddleName", NAME),
            Col("LastName", NAME, nullable=False),
            Col("DesignationId", "int", nullable=False),
        ),
        "Id",
        (
            ("0000002A000008990004", "0000002A000008990003", 2, "1F", employee(2, "Sally", "J.", "Smith"), 1),
            ("0000002A000008B90003", "0000002A000008B90002", 3, "0A", employee(1, "John", "N.", "Doe"), 1),
            ("0000002A000008B90003", "0000002A000008B90002", 4, "0A", employee(1, "Johnn", "N.", "Doee"), 1),
        ),
        (
            ("insert", employee(2, "Sally", "J.", "Smith")),
            ("update", employee(1, "Johnn", "N.", "Doee")),
        ),
        before=(employee(1, "John", "N.", "Doe"),),
    ),
}


@pytest.mark.parametrize("name", RECORDINGS)
def test_recorded_rows_are_read(tmp_path: Path, name: str) -> None:
    recording = RECORDINGS[name]
    shop = Shop(tmp_path)
    shop.table("dbo.t", *recording.columns, key=(recording.key,))
    (instance,) = shop.capture.instances
    kinds = {column.name: column.type for column in recording.columns}
    shop.capture.write_recorded(
        instance,
        [
            (bytes.fromhex(start), None, bytes.fromhex(value), operation, bytes.fromhex(mask),
             *(stored(kinds[column], row[column]) for column in kinds), command)
            for start, value, operation, mask, row, command in recording.rows
        ],
    )  # fmt: skip
    found = records(shop.window(shop.task("dbo.t"), scan=False))
    assert tuple((str(one.op), image(one)) for one in found) == recording.wanted
    assert [one.order_key for one in found] == sorted(one.order_key for one in found)


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_simulator_writes_what_the_server_wrote(tmp_path: Path, name: str) -> None:
    """The same statements: operations, masks, images and commands are equal, and LSNs stand in the same order."""
    recording = RECORDINGS[name]
    shop = Shop(tmp_path)
    table = shop.table("dbo.t", *recording.columns, key=(recording.key,))
    for row in recording.before:
        shop.insert(table, row)
    shop.capture.scan()
    older = len(change_rows(shop, table))
    for operation, row in recording.wanted:
        if operation == "insert":
            shop.insert(table, row)
        else:
            update(shop, table, recording.key, row)
    shop.capture.scan()
    simulated = change_rows(shop, table)[older:]
    assert [one[2:] for one in simulated] == [one[2:] for one in recording.rows]
    assert order(simulated) == order(recording.rows)


def update(shop: Shop, table: Table, key: str, row: Row) -> None:
    with shop.engine.transaction() as transaction:
        transaction.update(table, lambda one: one[key] == row[key], lambda _: row)


def change_rows(shop: Shop, table: Table) -> list[ChangeRow]:
    (instance,) = shop.capture.instances
    names = [column.name for column in table.columns]
    columns = ", ".join(map(quoted, ("__$start_lsn", "__$seqval", "__$operation", "__$update_mask", "__$command_id")))
    query = f"SELECT {columns}, {', '.join(map(quoted, names))} FROM {instance.table.sql} ORDER BY rowid"
    found = shop.engine.files.execute(query).fetchall()
    return [
        (start.hex().upper(), value.hex().upper(), operation, mask.hex().upper(), plain(names, row), command)
        for start, value, operation, mask, command, *row in found
    ]


def plain(names: list[str], row: list[object]) -> Row:
    """Without the types that the simulator stores beside some values."""
    return {name: parted(value)[1] for name, value in zip(names, row, strict=True)}


def order(rows: tuple[ChangeRow, ...] | list[ChangeRow]) -> list[int]:
    """The rank of each LSN among all of them: row LSNs are below that of their commit."""
    lsns = [lsn for row in rows for lsn in row[:2]]
    ranks = {lsn: rank for rank, lsn in enumerate(sorted(set(lsns)))}
    return [ranks[lsn] for lsn in lsns]


def test_an_update_of_a_key_has_the_rows_that_a_server_shows_for_it(tmp_path: Path) -> None:
    """A delete and an insert with one row LSN and full masks, the second with the next command."""
    shop = Shop(tmp_path)
    table = shop.table("dbo.foo", Col("id", "int", nullable=False), Col("a", "char(1)"))
    shop.insert(table, {"id": 1, "a": "a"})
    shop.update(table, 1, id=2)
    shop.capture.scan()
    _, deleted, inserted = change_rows(shop, table)
    assert deleted[:2] == inserted[:2]
    assert (deleted[2:4], inserted[2:4]) == ((1, "03"), (2, "03"))
    assert inserted[5] == deleted[5] + 1
