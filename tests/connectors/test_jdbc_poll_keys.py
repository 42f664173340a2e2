"""What the catalog of a polled database shows about the uniqueness of a key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

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
