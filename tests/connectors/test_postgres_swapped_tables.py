"""Changes of tables that swap their names."""

from __future__ import annotations

from dataclasses import replace

from tests.connectors.conftest import Database, records

ITEM, OTHER = "public.item", "public.other"


def test_changes_of_two_tables_that_swapped_their_names_go_to_the_names_of_now(
    database: Database,
) -> None:
    """The copy of one of them was made anew; the other one waits for a new copy, and its identity is the former one."""
    database.sql("CREATE TABLE item (id int PRIMARY KEY, name text)", "CREATE TABLE other (id int PRIMARY KEY)")
    database.publish("item", "other")
    former = database.source.identities([ITEM, OTHER])
    database.sql("ALTER TABLE item RENAME TO t", "ALTER TABLE other RENAME TO item", "ALTER TABLE t RENAME TO other")
    now = database.source.identities([ITEM])
    start = database.source.open_stream([ITEM])
    database.sql("INSERT INTO item VALUES (1)", "INSERT INTO other VALUES (2, 'b')")
    waiting, copied_anew = (
        replace(task, control=replace(task.control, identity=identity[name]))
        for name, identity in ((OTHER, former), (ITEM, now))
        if (task := database.task(name, database.task(name).schema)).control
    )
    for tasks in ((copied_anew, waiting), (waiting, copied_anew), (waiting, database.task(ITEM))):
        found = records(database.read(start, *tasks))
        assert [(record.table, record.key) for record in found] == [(ITEM, "[1]"), (OTHER, "[2]")]
