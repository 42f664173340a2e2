"""Changes of tables that swap their names."""

from __future__ import annotations

from dataclasses import replace

from airflow_cdc_provider.connectors.source import HoleFound
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


def test_changes_of_a_table_that_has_the_name_of_the_copied_one_for_some_time_are_a_hole(database: Database) -> None:
    """The run compared the identities before the names were swapped, the next run does so after they were swapped
    back."""
    database.sql("CREATE TABLE item (id int PRIMARY KEY)", "CREATE TABLE other (id int PRIMARY KEY)")
    database.publish("item", "other")
    identities = database.source.identities([ITEM, OTHER])
    tasks = [
        replace(task, identity=identities[name], control=replace(task.control, identity=identities[name]))
        for name in (ITEM, OTHER)
        if (task := database.task(name, database.task(name).schema)).control
    ]
    start = database.source.open_stream([ITEM, OTHER])
    database.sql("INSERT INTO item VALUES (1)")
    swap = ("ALTER TABLE item RENAME TO t", "ALTER TABLE other RENAME TO item", "ALTER TABLE t RENAME TO other")
    database.sql(*swap, "INSERT INTO item VALUES (2)")
    found = [item.table for item in database.read(start, *tasks) if isinstance(item, HoleFound)]
    database.sql(*swap)
    assert found == [ITEM]
    assert not [item for item in database.read(start, *tasks) if isinstance(item, HoleFound)]
