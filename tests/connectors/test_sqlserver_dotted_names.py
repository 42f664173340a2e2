"""Table ``b.c`` of schema ``dbo`` and table ``c`` of schema ``dbo.b`` are kept apart."""

from __future__ import annotations

from pathlib import Path

from tests.connectors.sqlserver_database import Shop, records
from tests.simulators.sqlserver.tables import Col

NAMES = ('dbo."b.c"', '"dbo.b".c')


def test_copies_and_changes_of_both_are_kept_apart(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    tables = [shop.table(name, Col("id", "int", False), Col("word", "nvarchar(20)")) for name in NAMES]
    for number, table in enumerate(tables, 1):
        shop.insert(table, {"id": number, "word": table.name})
    tasks = [shop.task(name) for name in NAMES]
    assert [[row["id"] for row in shop.copied(task)[1].values()] for task in tasks] == [[1], [2]]
    shop.window(*tasks)
    shop.update(tables[1], 2, word="new")
    assert {record.table for record in records(shop.window(*tasks))} == {NAMES[1]}
    assert shop.source.identities(NAMES).keys() == set(NAMES)
