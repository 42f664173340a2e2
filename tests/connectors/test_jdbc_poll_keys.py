"""What the catalog of a polled database shows about the uniqueness of a key."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from airflow_cdc_provider.connectors.sources.jdbc_poll.rows import RowConverter
from airflow_cdc_provider.connectors.sources.polling.pages import Query, Row, read_pages
from airflow_cdc_provider.core.errors import Problem, SourceUnavailable, SourceUnreachable
from tests.connectors.polled_database import Polling
from tests.connectors.test_jdbc_poll import Shop

KEYED = """
CREATE TABLE keyed (id INTEGER PRIMARY KEY NOT NULL, k TEXT NOT NULL, part TEXT NOT NULL, e INTEGER NOT NULL,
  maybe TEXT, a INTEGER NOT NULL, updated_at DATETIME NOT NULL);
CREATE INDEX stamp ON keyed (updated_at);
CREATE INDEX plain ON keyed (k);
CREATE UNIQUE INDEX filtered ON keyed (part) WHERE e > 0;
CREATE UNIQUE INDEX expression ON keyed (e + 1);
CREATE UNIQUE INDEX nullable ON keyed (maybe);
CREATE UNIQUE INDEX whole ON keyed (a);
"""


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(tmp_path / "shop.db")
    shop.connection.executescript(KEYED)
    yield shop
    shop.connection.close()


def found(polling: Polling, table: str, **rule: Any) -> list[str]:
    """The codes of ``check``. A run refuses the table for the first of them."""
    task = polling.task(table, **rule)
    codes = [problem.code for problem in polling.source.check([task])]
    assert [problem.code for problem in polling.source.refused([task]).values()] == codes[:1]
    return codes


@pytest.mark.parametrize("key", [("k",), ("part",), ("e",), ("k", "part")])
def test_a_key_that_no_unique_index_of_sqlite_proves_is_refused(shop: Shop, key: tuple[str, ...]) -> None:
    assert found(shop.polling(key_audit=86400), "main.keyed", key=key) == ["SRC063"]


def test_a_nullable_key_is_refused_for_both(shop: Shop) -> None:
    assert found(shop.polling(key_audit=86400), "main.keyed", key=("maybe",)) == ["SRC063", "SRC063"]


@pytest.mark.parametrize("key", [("a",), ("a", "k"), ("id", "k"), ()])
def test_a_key_that_contains_a_unique_index_of_sqlite_is_accepted(shop: Shop, key: tuple[str, ...]) -> None:
    assert found(shop.polling(key_audit=86400), "main.keyed", key=key) == []


def test_a_table_whose_questions_fail_refuses_no_other(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its reader reports the error. One of the connection is an error of all tables."""
    shop.sql("CREATE TABLE other (id INTEGER, updated_at DATETIME)")
    polling = shop.polling()
    tasks = [polling.task("main.keyed"), polling.task("main.other")]
    require_readable = polling.source._require_readable

    def fail(error: Exception) -> None:
        def require(task: Any) -> None:
            if task.table == "main.keyed":
                raise error
            require_readable(task)

        monkeypatch.setattr(polling.source, "_require_readable", require)

    fail(SourceUnavailable(Problem("SRC042", "it fails")))
    assert {table: problem.code for table, problem in polling.source.refused(tasks).items()} == {"main.other": "SRC063"}
    fail(SourceUnreachable(Problem("SRC001", "no connection")))
    with pytest.raises(SourceUnreachable):
        polling.source.refused(tasks)


def test_pages_of_sqlite_distinguish_keys_that_the_column_calls_equal(shop: Shop) -> None:
    """The index is of another collation than the column."""
    shop.sql("CREATE TABLE d (k TEXT COLLATE NOCASE NOT NULL, n INTEGER NOT NULL, updated_at DATETIME NOT NULL)")
    shop.sql("CREATE UNIQUE INDEX dx ON d (k COLLATE BINARY, n)")
    shop.sql("INSERT INTO d VALUES ('a', 1, ?1), ('A', 1, ?1), ('b', 1, ?1), ('B', 2, ?1)", "2026-01-01 00:00:00")
    polling = shop.polling()
    queries = polling.source._queries("main.d", polling.task("main.d", key=("k", "n")).schema)
    first = Query(datetime(2025, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC), 1)
    converter = RowConverter(queries)
    with polling.source.database.session() as connection:

        def run(query: Query) -> list[Row]:
            return [converter.page_row(tuple(row)) for row in connection.execute(queries.page(query))]

        read = [row.key for page in read_pages(run, first, False) for row in page.rows]
    assert read == ['["A",1]', '["B",2]', '["a",1]', '["b",1]']


@pytest.mark.parametrize(
    ("columns", "codes"),
    [
        ("id INTEGER PRIMARY KEY", []),
        ("id integer, PRIMARY KEY (id)", []),
        ("id INTEGER PRIMARY KEY AUTOINCREMENT", []),
        ("id INTEGER PRIMARY KEY DESC", ["SRC063"]),  # no rowid, and may be NULL
        ("id INT PRIMARY KEY", ["SRC063"]),
        ("id TEXT PRIMARY KEY", ["SRC063"]),
        ("id INTEGER, n INTEGER, PRIMARY KEY (id, n)", ["SRC063"]),
        ("id TEXT NOT NULL PRIMARY KEY", []),
    ],
)
def test_the_rowid_of_sqlite_is_never_null(shop: Shop, columns: str, codes: list[str]) -> None:
    declared, _, constraint = columns.partition(", PRIMARY")
    constraint = f", PRIMARY{constraint}" if constraint else ""
    shop.sql(f"CREATE TABLE t ({declared}, updated_at DATETIME NOT NULL{constraint})")
    shop.sql("CREATE INDEX tx ON t (updated_at)")
    assert found(shop.polling(key_audit=86400), "main.t") == codes


def test_the_key_of_a_table_without_rowid_is_never_null(shop: Shop) -> None:
    shop.sql("CREATE TABLE t (id TEXT PRIMARY KEY, updated_at DATETIME NOT NULL) WITHOUT ROWID")
    shop.sql("CREATE INDEX tx ON t (updated_at)")
    assert found(shop.polling(key_audit=86400), "main.t") == []
