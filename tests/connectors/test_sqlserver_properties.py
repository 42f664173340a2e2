"""Random transactions, capture scans, copies beside writers and windows: the folded changes equal the table.

The rows of a copy may be newer than its floor, and its splits of different moments; the replay ends in the same state.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_cdc_provider.connectors.source import Boundary
from airflow_cdc_provider.connectors.sources.sqlserver import stream
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from tests.connectors.sqlserver_database import Rows, Shop, apply, holes, records
from tests.model.seeds import histories, only, replayed_by, seed
from tests.simulators.sqlserver.tables import Col, Row, Table

SEED, HISTORIES = seed(), histories(3)
TRANSACTIONS = 40
KEYS = 14
PLAIN = (Col("id", "int", False), Col("word", "varchar(20)"), Col("n", "decimal(9,2)"), Col("at", "datetime2(7)"))
LARGE = (Col("id", "int", False), Col("doc", "nvarchar(max)"), Col("old", "text"), Col("n", "int"))


def values(draw: random.Random, table: Table) -> Row:
    choices: dict[str, Any] = {
        "word": [None, "", "a", "é", "A"],
        "n": [None, 0, 1, 25],
        "at": [None, "2026-01-02 03:04:05.1234567"],
        "doc": [None, "", "ü" * 10],
        "old": [None, "b", "c"],
    }
    return {name: draw.choice(choices[name]) for name in draw.sample(list(choices), 3) if name in
            [column.name for column in table.columns]}  # fmt: skip


def write(shop: Shop, draw: random.Random, tables: list[Table]) -> None:
    """One transaction of several statements; some are rolled back."""
    transaction = shop.engine.begin()
    for _ in range(draw.randrange(1, 5)):
        table = draw.choice(tables)
        taken = {row["id"] for row in table.rows.values()}
        key, moved = draw.randrange(KEYS), draw.randrange(KEYS)
        new = values(draw, table)
        match draw.randrange(5):
            case 0 | 1 if key not in taken:
                transaction.insert(table, {"id": key, **new})
            case 2:
                transaction.delete(table, lambda row, key=key: row["id"] == key)
            case 3 if table.name != "large" and key in taken and moved not in taken:
                transaction.update(table, lambda row, key=key: row["id"] == key, lambda _row, to=moved: {"id": to})
            case 3 if table.name != "large":
                transaction.update(table, lambda _row: True, rotation(draw, sorted(taken)))
            case _:
                as_pairs = table.name != "large" and draw.random() < 0.3
                transaction.update(
                    table, lambda row, key=key: row["id"] <= key, lambda _row, new=new: new, as_pairs=as_pairs
                )
    if draw.random() < 0.15:
        transaction.rollback()
    else:
        transaction.commit()


def rotation(draw: random.Random, keys: list[int]) -> Callable[[Row], Row]:
    """Rows take each other's keys in one statement."""
    others = keys[:]
    draw.shuffle(others)
    moved = dict(zip(keys, others, strict=True))
    return lambda row: {"id": moved[row["id"]]}


@pytest.mark.parametrize("number", [one for one in range(HISTORIES) if only() in (None, one)])
def test_folded_windows_of_any_length_equal_the_tables(
    tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    print(replayed_by(SEED, HISTORIES, __file__))
    draw = random.Random(f"{SEED} {number}")
    monkeypatch.setattr(stream, "COMMITS_AT_ONCE", draw.choice([1, 3, 1000]))
    shop = Shop(tmp_path, shuffle=draw.choice([None, draw.shuffle]))
    tables = [
        shop.table("dbo.clustered", *PLAIN),
        shop.table("dbo.heap", *PLAIN, clustered=False),
        shop.table("stock.large", *LARGE),
    ]
    names = [table.full_name for table in tables]
    rows: dict[str, Rows] = {name: {} for name in names}
    floors = dict.fromkeys(names, "")
    applied: dict[str, list[ChangeRecord]] = {name: [] for name in names}
    copied_at = {name: draw.randrange(TRANSACTIONS) for name in names}
    switched = draw.randrange(TRANSACTIONS)

    def write_some() -> None:
        for _ in range(draw.randrange(3)):
            write(shop, draw, tables)
        if draw.random() < 0.5:
            shop.capture.scan(draw.randrange(1, 6))

    for moment in range(TRANSACTIONS):
        write(shop, draw, tables)
        if draw.random() < 0.4:
            shop.capture.scan(draw.randrange(1, 9))
        if moment == switched:
            shop.capture.enable(tables[0], "newer")
        tasks = [shop.task(name) for name in names]
        if draw.random() < 0.3:
            land(shop, draw, tasks, applied)
        for task in tasks:
            if copied_at[task.table] == moment:
                copy, rows[task.table] = copied(shop, draw, task, write_some)
                floors[task.table] = copy.floor
                applied[task.table] = [one for one in applied[task.table] if one.order_key > copy.floor]
    tasks = [shop.task(name) for name in names]
    land(shop, draw, tasks, applied, to_end=True)
    for task in tasks:
        apply(rows[task.table], applied[task.table], task.schema, floors[task.table])
        assert rows[task.table] == shop.truth(task), replayed_by(SEED, HISTORIES, __file__)


def copied(shop: Shop, draw: random.Random, task: TableTask, between: Callable[[], None]) -> tuple[Any, Rows]:
    """In splits of key ranges, with writers between them."""
    with shop.source.copy(task, 1, shop.position, 4) as copy:
        assert all(split for split in copy.read.splits)
    return shop.copied(task, 1, between)


def land(
    shop: Shop,
    draw: random.Random,
    tasks: list[TableTask],
    applied: dict[str, list[ChangeRecord]],
    to_end: bool = False,
) -> None:
    """A window that ends at any boundary; the next one repeats what follows it."""
    if to_end:
        shop.capture.scan()
    start = shop.position
    items = shop.window(*tasks, scan=False)
    assert not holes(items)
    ends = [at for at, item in enumerate(items) if isinstance(item, Boundary)]
    if ends and not to_end:
        last = draw.choice(ends)
        end = items[last]
        assert isinstance(end, Boundary)
        shop.position = start
        again = shop.window(*tasks, limit=end.position, scan=False)
        assert shop.position == end.position
        assert records(again) == records(items[: last + 1])
        items = again
    for one in records(items):
        applied[one.table].append(one)
