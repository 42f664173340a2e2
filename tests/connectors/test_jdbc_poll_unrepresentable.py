"""Values of polled tables that no target type can represent: never another value, and nothing is lost where the
definition keeps them."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import BadRecordFound, CheckFailed
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.quarantine import record_id, undecoded
from airflow_cdc_provider.core.spec.definition import Columns, OnUnrepresentable
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors.conftest import Database
from tests.connectors.mysql_database import Shop
from tests.connectors.polled import records
from tests.connectors.polled_database import Polling, images
from tests.mariadb import embedded

pytestmark = pytest.mark.server

DRIVER = "postgresql+psycopg"
DRIVERS = [DRIVER, pytest.param("postgresql+psycopg2", marks=pytest.mark.nightly)]
ODD = [
    ("date", "infinity", "2024-02-29"),
    ("date", "0044-03-15 BC", "0001-01-01"),
    ("date", "10000-01-01", "9999-12-31"),
    ("timestamp", "-infinity", "2024-02-29 12:34:56.5"),
    ("timestamptz", "infinity", "9999-12-31 23:59:59.999999+00"),
    ("timestamptz", "294276-12-31 23:59:59+00", "0001-01-01 00:00:00+00"),
    ("numeric(10,2)", "NaN", "12.50"),
]
KEYS = ["v", pytest.param("id", marks=pytest.mark.nightly)]
STAMP = "updated_at timestamptz NOT NULL DEFAULT now() - interval '1 minute'"
NULLS = OnUnrepresentable.SET_NULL


def postgres(database: Database, driver: str, native: str, *values: str, key: str = "id") -> Polling:
    database.sql(f"CREATE TABLE odd (id int NOT NULL, v {native}, {STAMP}, PRIMARY KEY ({key}))")
    for number, value in enumerate(values):
        database.sql(f"INSERT INTO odd (id, v) VALUES ({number}, '{value}')")
    server = database.server
    polling = Polling(
        driver, ConnectionInfo("db", server.host, server.port, "postgres", server.password, database.name)
    )
    polling.position = polling.source.open_stream(["public.odd"])
    return polling


def both(polling: Polling, table: str, **rule: Any) -> tuple[list[Any], list[Any]]:
    """The columns ``v`` of a window and of a copy."""
    task = polling.task(table, **rule)
    polling.copy(task)
    copied = [{k: v for k, v in row.items() if k.endswith("v")} for row in polling.rows[table].values()]
    return [{k: v for k, v in row.items() if k.endswith("v")} for _, row in images(polling.window(task))], copied


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(("native", "odd", "plain"), ODD)
def test_by_default_the_copy_stops_and_a_polled_row_is_a_bad_record(
    database: Database, driver: str, native: str, odd: str, plain: str
) -> None:
    polling = postgres(database, driver, native, odd, plain)
    task = polling.task("public.odd")
    with pytest.raises(BadRecordFound, match=r"CPY009.*v: .*cast: {v: text}"):
        polling.copy(task)
    first, again = ([one for one in records(polling.window(task)) if undecoded(one)] for _ in range(2))
    assert [*map(record_id, first)] == [*map(record_id, again)] != [], "an interval overlaps the one before it"
    assert (bad := undecoded(first[0])) and (bad.columns, bad.known["id"]) == (("v",), 0)
    assert odd in b64decode(bad.raw).decode() and "on_unrepresentable: set_null" in bad.reason


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(("native", "odd", "plain"), ODD)
def test_set_null_writes_null_and_the_text_to_another_column(
    database: Database, driver: str, native: str, odd: str, plain: str
) -> None:
    streamed, copied = both(postgres(database, driver, native, odd, plain), "public.odd", on_unrepresentable=NULLS)
    for found in (streamed, copied):
        assert found[0] == {"v": None, "_cdc_text_v": odd}
        assert found[1]["v"] is not None and found[1]["_cdc_text_v"] is None


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(("native", "odd", "plain"), ODD)
@pytest.mark.parametrize("key", KEYS)
def test_a_cast_column_contains_the_texts_of_the_server(
    database: Database, driver: str, native: str, odd: str, plain: str, key: str
) -> None:
    polling = postgres(database, driver, native, odd, plain, key=key)
    streamed, copied = both(polling, "public.odd", columns=Columns(cast={"v": "text"}))
    assert sorted(row["v"] for row in streamed) == sorted(row["v"] for row in copied) == sorted([odd, plain])


@pytest.mark.parametrize(("native", "values"), [
    ("date", "date '2000-01-01' + n"),
    ("timestamptz", "timestamptz '2000-01-01' + n * interval '0.000001 s'"),
    ("numeric(30,10)", "n / 7.0"),
    ("bigint", "9007199254740990 + n"),
    ("double precision", "n / 7.0"),
    ("uuid", "lpad(n::text, 32, '0')::uuid"),
    ("boolean", "n > 0"),
])  # fmt: skip
def test_pages_of_a_cast_key_continue_where_they_ended(database: Database, native: str, values: str) -> None:
    rows = 2 if native == "boolean" else 250
    polling = postgres(database, DRIVER, native, key="v, id")
    polling = Polling(DRIVER, polling.source.database.info, page_rows=100 if rows > 2 else 1)
    database.sql(
        f"INSERT INTO odd (id, v, updated_at) SELECT n, {values}, now() - interval '1 minute' "
        f"FROM generate_series(0, {rows - 1}) n"
    )
    polling.position = polling.source.open_stream(["public.odd"])
    items = polling.window(polling.task("public.odd", columns=Columns(cast={"v": "text"})))
    keys = [item.key for item in items if isinstance(item, ChangeRecord)]
    assert len(keys) == len(set(keys)) == rows


@pytest.fixture(scope="module")
def mariadb() -> Iterator[EmbeddedMariaDB]:
    with embedded() as server:
        yield server


NO_DATES = [
    ("date", "0000-00-00", "2024-02-29"),
    ("date", "2024-02-31", "2024-02-29"),
    ("datetime(3)", "0000-00-00 00:00:00.000", "2024-02-29 12:34:56.120"),
    ("datetime", "2024-00-10 11:12:13", "2024-02-29 12:34:56"),
    ("timestamp(6)", "0000-00-00 00:00:00.000000", "2024-02-29 12:34:56.000001"),
]


def maria(server: EmbeddedMariaDB, native: str, *values: str, key: str = "id") -> tuple[Polling, str]:
    shop = Shop(server)
    shop.sql(
        "SET sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'",
        f"CREATE TABLE odd (id int NOT NULL, v {native} NOT NULL, updated_at datetime(6) NOT NULL, "
        f"PRIMARY KEY ({key}))",
        *(
            f"INSERT INTO odd VALUES ({number}, '{value}', utc_timestamp(6) - interval 1 minute)"
            for number, value in enumerate(values)
        ),
    )
    info = ConnectionInfo("db", server.host, server.port, server.user, server.password, shop.name)
    polling, table = Polling("mysql+pymysql", info, page_rows=1), f"{shop.name}.odd"
    polling.position = polling.source.open_stream([table])
    return polling, table


@pytest.mark.parametrize(("native", "odd", "plain"), NO_DATES)
def test_a_zero_date_stops_its_table_or_its_text_is_kept(
    mariadb: EmbeddedMariaDB, native: str, odd: str, plain: str
) -> None:
    polling, table = maria(mariadb, native, odd, plain)
    with pytest.raises(BadRecordFound, match=r"CPY009.*v: an invalid date, such as a zero date"):
        polling.copy(polling.task(table))
    for found in both(polling, table, on_unrepresentable=NULLS):
        assert found[0] == {"v": None, "_cdc_text_v": odd}
        assert found[1]["v"] is not None and found[1]["_cdc_text_v"] is None


@pytest.mark.parametrize(("native", "odd", "plain"), NO_DATES)
@pytest.mark.parametrize("key", KEYS)
def test_a_zero_date_is_copied_as_text(mariadb: EmbeddedMariaDB, native: str, odd: str, plain: str, key: str) -> None:
    polling, table = maria(mariadb, native, odd, plain, key=key)
    streamed, copied = both(polling, table, columns=Columns(cast={"v": "text"}))
    assert sorted(row["v"] for row in streamed) == sorted(row["v"] for row in copied) == sorted([odd, plain])


def test_floating_numbers_of_mariadb_have_no_exact_text(mariadb: EmbeddedMariaDB) -> None:
    polling, table = maria(mariadb, "double", "0.1")
    task = polling.task(table, columns=Columns(cast={"v": "text"}))
    assert "SRC105" in [problem.code for problem in polling.source.check([task])]
    with pytest.raises(CheckFailed, match=r"SRC105.*odd\.v"):
        polling.copy(task)


FLOATS = [
    *(("double", text) for text in ("0.7222753006241054", "1e-15", "-1.7976931348623157e308", "123456789.12345679")),
    *(("float", text) for text in ("1.2345678806304932", "16777216.0", "1.401298464324817e-45")),
]


@pytest.mark.parametrize(("native", "text"), FLOATS)
@pytest.mark.parametrize("key", KEYS)
def test_a_floating_number_of_mariadb_keeps_all_its_digits(
    mariadb: EmbeddedMariaDB, native: str, text: str, key: str
) -> None:
    """A FLOAT is the double of the same value."""
    polling, table = maria(mariadb, native, text, "0.5", key=key)
    streamed, copied = both(polling, table)
    for rows in (streamed, copied):
        assert sorted(row["v"] for row in rows) == sorted([float(text), 0.5])
