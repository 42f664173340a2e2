"""What an ALTER TABLE does to columns of a window and of the target."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from airflow_cdc_provider.connectors.source import Boundary, HoleFound
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.schema_changes import compare
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors.mysql_database import Shop, holes, records
from tests.mariadb import mariadb_only

pytestmark = pytest.mark.server


@pytest.fixture
def shop(mariadb: EmbeddedMariaDB) -> Shop:
    shop = Shop(mariadb)
    shop.position = shop.source.open_stream([])
    return shop


@pytest.mark.parametrize("action", ["MODIFY word varchar(1)", "MODIFY at datetime", "MODIFY mood enum('new', 'done')"])
def test_a_window_that_ends_before_an_alter_does_not_hide_it_from_the_next(shop: Shop, action: str) -> None:
    """The catalog is already that after the ALTER, and the target takes over the types of a window."""
    shop.sql(
        "CREATE TABLE c (id int PRIMARY KEY, word varchar(20), at datetime(6), mood enum('new', 'open', 'done'))",
        "INSERT INTO c VALUES (1, 'a', '2026-01-02 03:04:05.5', 'new')",
    )
    shop.window()
    held = shop.task("c").schema
    shop.sql("UPDATE c SET word = 'b'")
    limit = shop.status("c").limit
    shop.sql(f"ALTER TABLE c {action}")
    first = shop.window(shop.task("c", held), limit=limit)
    latest = next((item for item in reversed(first) if isinstance(item, TableSchema)), held)
    assert holes(first) or holes(shop.window(shop.task("c", latest)))


def test_a_default_with_a_cast_that_is_gone_again_is_a_hole(shop: Shop) -> None:
    shop.sql("CREATE TABLE c (id int PRIMARY KEY)", "INSERT INTO c VALUES (1)")
    shop.window()
    held = shop.task("c").schema
    shop.sql("ALTER TABLE c ADD later varchar(9) DEFAULT (CAST(1 AS CHAR))", "ALTER TABLE c ALTER later DROP DEFAULT")
    shop.sql("INSERT INTO c VALUES (2, NULL)")
    assert shop.ask("SELECT later FROM c WHERE id = 1") == [("1",)]
    (table, why), *_ = holes(shop.window(shop.task("c", held)))
    assert table == shop.table("c") and why.startswith("rows older than column later have a value")


@pytest.mark.parametrize("action", ["MODIFY v varchar(20)", "CHANGE v v varchar(20) COMMENT 'x'"])
def test_a_text_that_gets_the_character_set_of_its_table_is_a_hole_where_it_may_be_cut(shop: Shop, action: str) -> None:
    shop.sql(
        "CREATE TABLE c (id int PRIMARY KEY, v varchar(20) CHARACTER SET utf8mb4) DEFAULT CHARSET latin1",
        "INSERT INTO c VALUES (1, '日本')",
    )
    shop.window()
    held = shop.task("c").schema
    shop.sql("SET SESSION sql_mode = ''", f"ALTER TABLE c {action}")
    assert shop.ask("SELECT v FROM c") == [("??",)]
    assert shop.status("c").has_changes
    ((table, why),) = holes(shop.window(shop.task("c", held)))
    assert table == shop.table("c") and "sql_mode is not strict" in why


@pytest.mark.parametrize("column", ["number", "later"])
def test_a_column_that_is_dropped_and_added_again_is_a_hole_also_with_rows_in_between(shop: Shop, column: str) -> None:
    """The target keeps a dropped column with its values, whether it had the column before or added it in this
    window."""
    shop.sql("CREATE TABLE c (id int PRIMARY KEY, word varchar(9), number int)", "INSERT INTO c VALUES (1, 'a', 7)")
    shop.window()
    held = shop.task("c").schema
    shop.sql("ALTER TABLE c ADD later int", "INSERT INTO c VALUES (2, 'b', 8, 9)")
    assert not holes(shop.window(shop.task("c", held)))
    shop.sql("ALTER TABLE c ADD last int", "INSERT INTO c VALUES (3, 'b', 8, 9, 10)")
    shop.sql(f"ALTER TABLE c DROP {column}", "UPDATE c SET word = 'c' WHERE id = 1", f"ALTER TABLE c ADD {column} int")
    (table, why), *_ = holes(shop.window(shop.task("c", held)))
    assert (table, why) == (shop.table("c"), f"column {column} was dropped and another one was added under its name")


@pytest.mark.parametrize("drop", ["ALTER TABLE c DROP PRIMARY KEY", "DROP INDEX `PRIMARY` ON c"])
def test_rows_with_equal_keys_while_the_table_has_no_key_are_a_hole(shop: Shop, drop: str) -> None:
    """A delete of one of them by its key would delete the other one."""
    shop.sql("CREATE TABLE c (id int PRIMARY KEY, word text)", "INSERT INTO c VALUES (1, 'a')")
    shop.window()
    held = shop.task("c").schema
    shop.sql(
        drop, "INSERT INTO c VALUES (1, 'b')", "DELETE FROM c WHERE word = 'a'", "ALTER TABLE c ADD PRIMARY KEY (id)"
    )
    (table, why), *_ = holes(shop.window(shop.task("c", held)))
    assert table == shop.table("c") and why.startswith("the table has no primary key from here on")


@pytest.mark.parametrize("action", ["MODIFY twice int", "CHANGE twice doubled int"])
def test_a_generated_column_that_becomes_an_ordinary_one_is_a_hole_also_after_rows(shop: Shop, action: str) -> None:
    """The catalog already has it as an ordinary column, and the binlog does not show that it was generated."""
    shop.sql("CREATE TABLE c (id int PRIMARY KEY, word text, twice int AS (id * 2) STORED)")
    shop.sql("INSERT INTO c (id) VALUES (1), (2)")
    shop.window()
    held, start = shop.task("c").schema, shop.position
    shop.sql("UPDATE c SET word = 'b' WHERE id = 1")
    before_the_alter = shop.status("c").limit
    shop.sql(f"ALTER TABLE c {action}")
    for limit in (None, before_the_alter):
        shop.position = start
        items = shop.window(shop.task("c", held), limit=limit)
        assert holes(items) or holes(shop.window(shop.task("c", held)))


@pytest.mark.parametrize(
    "action",
    [
        "ADD later int",
        "ADD (later int, last int)",
        pytest.param("ADD COLUMN IF NOT EXISTS Later int", marks=mariadb_only),
    ],
)
def test_a_column_added_in_the_window_was_not_generated(shop: Shop, action: str) -> None:
    shop.sql("CREATE TABLE c (id int PRIMARY KEY, word text)", "INSERT INTO c VALUES (1, 'a')")
    shop.window()
    held = shop.task("c").schema
    shop.sql(f"ALTER TABLE c {action}", "UPDATE c SET later = 5", "ALTER TABLE c MODIFY later int COMMENT 'x'")
    items = shop.window(shop.task("c", held))
    assert not holes(items)
    assert records(items)[-1].after_complete


def test_a_new_column_is_emitted_before_the_window_ends_at_a_hole_of_another_table(shop: Shop) -> None:
    """Nothing follows that hole, so no later window would emit the schema."""
    shop.sql("CREATE TABLE c (id int PRIMARY KEY)", "CREATE TABLE d (id int PRIMARY KEY, word varchar(9))")
    shop.window()
    tasks = [shop.task(name, shop.task(name).schema) for name in ("c", "d")]
    shop.sql("ALTER TABLE c ADD later int", "ALTER TABLE d MODIFY word varchar(1)")
    now = [replace(shop.task(one.table.rpartition(".")[2]), control=one.control) for one in tasks]
    items = shop.window(*now)
    hole = next(at for at, item in enumerate(items) if isinstance(item, HoleFound))
    end = next(at for at, item in enumerate(items) if isinstance(item, Boundary) and at > hole)
    assert [one.names for one in items[:end] if isinstance(one, TableSchema)] == [("id", "later")]


def test_a_column_with_the_former_name_of_another_one_is_renamed_as_itself(shop: Shop) -> None:
    shop.sql("CREATE TABLE c (id int PRIMARY KEY, state text)", "INSERT INTO c VALUES (1, 'a')")
    shop.window()
    schemas = [shop.task("c").schema]
    for statements in (
        ["ALTER TABLE c RENAME COLUMN state TO old_state"],
        [
            "ALTER TABLE c ADD state text",
            "UPDATE c SET state = 'b'",
            "ALTER TABLE c RENAME COLUMN state TO status",
            "ALTER TABLE c RENAME COLUMN old_state TO older",
        ],
    ):
        held = schemas[-1]
        shop.sql(*statements)
        schemas += [one for one in shop.window(shop.task("c", held)) if isinstance(one, TableSchema)]
    assert [str(change) for pair in pairwise(schemas) for change in compare(*pair)] == [
        "column state was renamed to old_state",
        "column state text was added",
        "column state was renamed to status",
        "column old_state was renamed to older",
    ]


@pytest.mark.parametrize(
    "action", ["MODIFY word varchar(1)", "DROP word", "RENAME COLUMN word TO name", "ADD z int DEFAULT 5"]
)
@pytest.mark.parametrize("written", [[], ["INSERT INTO c VALUES (2, 'b')"]], ids=["", "after a row"])
def test_an_alter_during_the_first_copy_is_a_hole(shop: Shop, action: str, written: list[str]) -> None:
    """Some splits of the copy may have been read before it, and others after it. The columns of a row in the stream are
    not those of the copy."""
    shop.sql("CREATE TABLE c (id int PRIMARY KEY, word varchar(20))", "INSERT INTO c VALUES (1, 'a')")
    shop.window()
    shop.sql(*written, f"ALTER TABLE c {action}")
    assert holes(shop.window(replace(shop.task("c"), state=TableState.PENDING)))


def test_a_new_column_during_the_first_copy_is_no_hole(shop: Shop) -> None:
    shop.sql("CREATE TABLE c (id int PRIMARY KEY, word varchar(20), KEY w (word))", "INSERT INTO c VALUES (1, 'a')")
    shop.window()
    shop.sql("ALTER TABLE c ADD later int, RENAME INDEX w TO v", "ALTER TABLE c DROP INDEX v", "UPDATE c SET later = 1")
    assert not holes(shop.window(replace(shop.task("c"), state=TableState.PENDING)))


@pytest.mark.parametrize("action", ["DELETE CASCADE", "DELETE SET NULL", "UPDATE CASCADE"])
def test_a_foreign_key_that_changes_rows_is_a_hole_when_it_is_added(shop: Shop, action: str) -> None:
    shop.sql("CREATE TABLE parent (id int PRIMARY KEY)", "CREATE TABLE c (id int PRIMARY KEY, owner int)")
    shop.window()
    held = shop.task("c").schema
    shop.sql(f"ALTER TABLE c ADD CONSTRAINT fk FOREIGN KEY (owner) REFERENCES parent (id) ON {action}")
    assert shop.status("c").has_changes
    ((table, why),) = holes(shop.window(shop.task("c", held)))
    assert (table, why.split(" ")[:3]) == (shop.table("c"), ["a", "foreign", "key"])


def test_a_foreign_key_that_changes_no_row_is_no_hole(shop: Shop) -> None:
    shop.sql("CREATE TABLE parent (id int PRIMARY KEY)", "CREATE TABLE c (id int PRIMARY KEY, owner int)")
    shop.window()
    held = shop.task("c").schema
    shop.sql("ALTER TABLE c ADD FOREIGN KEY (owner) REFERENCES parent (id) ON DELETE RESTRICT ON UPDATE NO ACTION")
    assert not holes(shop.window(shop.task("c", held)))


@mariadb_only
def test_a_table_whose_rows_a_foreign_key_changes_is_not_copied(shop: Shop) -> None:
    """A new copy after the hole would be wrong again after the next delete."""
    shop.sql("CREATE TABLE parent (id int PRIMARY KEY)")
    shop.sql(
        "CREATE TABLE c (id int PRIMARY KEY, owner int, FOREIGN KEY (owner) REFERENCES parent (id) ON DELETE CASCADE)"
    )
    with pytest.raises(CheckFailed) as raised:
        shop.copied(shop.task("c"))
    (problem,) = raised.value.problems
    assert (problem.code, problem.where) == ("SRC104", shop.table("c"))
    shop.sql("CREATE TABLE C (id int PRIMARY KEY)")
    shop.copied(shop.task("C"))
    shop.sql("ALTER TABLE c DROP FOREIGN KEY c_ibfk_1")
    shop.copied(shop.task("c"))
