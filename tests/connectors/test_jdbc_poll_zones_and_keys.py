"""What a polled server shows about the time zone of its timestamps and about the uniqueness of a key."""

from __future__ import annotations

from typing import Any

import pymysql
import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.connectors.conftest import Database
from tests.connectors.polled_database import Polling, images

pytestmark = pytest.mark.server

LOCAL = """
CREATE TABLE local (id int PRIMARY KEY, v text, updated_at timestamp NOT NULL DEFAULT clock_timestamp());
CREATE INDEX ON local (updated_at)
"""


def of(database: Database, **options: Any) -> Polling:
    server = database.server
    info = ConnectionInfo("db", server.host, server.port, "postgres", server.password, database.name)
    return Polling("postgresql+psycopg", info, key_audit=86400, **options)


def problems(polling: Polling, table: str, **rule: Any) -> list[str]:
    return [problem.code for problem in polling.source.check([polling.task(table, **rule)])]


def west(database: Database, zone: str) -> None:
    """The zone is a default of sessions that begin later."""
    database.sql(f"ALTER DATABASE {database.name} SET timezone = '{zone}'")


@pytest.mark.parametrize(
    ("zone", "offset", "later"),
    [
        ("America/New_York", "-05:00", "-04:00"),
        ("Asia/Kolkata", "+05:30", "+05:31"),
        ("Europe/Berlin", "+01:00", "+02:00"),
    ],
)
def test_a_zone_that_is_not_named_is_refused_by_check_and_by_each_run(
    database: Database, zone: str, offset: str, later: str
) -> None:
    polling = of(database)
    database.sql(LOCAL, "INSERT INTO local VALUES (1, 'x', now())")
    assert problems(polling, "public.local") == []
    polling.position = polling.source.open_stream(["public.local"])
    west(database, zone)
    polling = of(database)
    task = polling.task("public.local")
    polling.position = polling.source.open_stream(["public.local"])
    (problem,) = polling.source.check([task])
    assert problem.code == "SRC160" and offset in problem.do and zone in problem.found
    assert polling.source.status(polling.position, ["public.local"]).has_changes
    assert polling.source.refused([task])["public.local"].do == problem.do
    with pytest.raises(CheckFailed, match="SRC160"):
        polling.window(task)
    with pytest.raises(CheckFailed, match="SRC160"):
        polling.copy(task)
    assert problems(of(database, time_zone=offset), "public.local") == []
    assert of(database, time_zone=offset).source.refused([task]) == {}
    assert problems(of(database, time_zone="UTC"), "public.local") == [], "many programs write UTC"
    assert problems(of(database, time_zone=later), "public.local") == ["SRC160"]
    assert of(database, time_zone=later).source.refused([task])["public.local"].code == "SRC160"
    assert problems(of(database, time_zone="-09:00"), "public.local") == ["SRC160"]
    assert of(database, time_zone="-09:00").source.refused([task]) == {}, "rows arrive late, and none is lost"


def test_each_run_compares_a_named_offset_with_the_zone_that_the_server_has_now(database: Database) -> None:
    west(database, "Etc/GMT-2")
    polling = of(database, time_zone="+02:00")
    database.sql(LOCAL, "INSERT INTO local VALUES (1, 'x', now())")
    task = polling.task("public.local")
    polling.position = polling.source.open_stream(["public.local"])
    assert polling.source.refused([task]) == {}
    west(database, "Etc/GMT-1")
    assert polling.source.status(polling.position, ["public.local"]).has_changes
    assert polling.source.refused([task])["public.local"].code == "SRC160"
    with pytest.raises(CheckFailed, match="SRC160"):
        polling.window(task)
    west(database, "Etc/GMT-3")
    assert polling.source.refused([task]) == {}


def test_rows_of_a_server_west_of_utc_arrive_with_its_offset(database: Database) -> None:
    west(database, "Etc/GMT+5")
    polling = of(database, time_zone="-05:00")
    database.sql(LOCAL)
    polling.position = polling.source.open_stream(["public.local"])
    task = polling.task("public.local")
    with database.connect() as local:
        local.execute("INSERT INTO local VALUES (1, 'x', clock_timestamp() - interval '5 seconds')")
    assert [row["id"] for _, row in images(polling.window(task))] == [1]


def test_timestamps_with_a_zone_need_no_other(database: Database) -> None:
    west(database, "America/New_York")
    database.sql(
        "CREATE TABLE zoned (id int PRIMARY KEY, updated_at timestamptz)", "CREATE INDEX ON zoned (updated_at)"
    )
    assert problems(of(database), "public.zoned") == []


def test_the_zone_of_mariadb_is_compared(mariadb: EmbeddedMariaDB) -> None:
    with pymysql.connect(
        host=mariadb.host, port=mariadb.port, user=mariadb.user, password=mariadb.password, autocommit=True
    ) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE DATABASE zones")
        cursor.execute("CREATE TABLE zones.t (id int PRIMARY KEY, updated_at datetime(6), INDEX (updated_at))")
        cursor.execute("CREATE TABLE zones.z (id int PRIMARY KEY, updated_at timestamp(6), INDEX (updated_at))")
        info = ConnectionInfo("db", mariadb.host, mariadb.port, mariadb.user, mariadb.password, "zones")

        def polling(**options: Any) -> Polling:
            return Polling("mysql+pymysql", info, key_audit=86400, **options)

        cursor.execute("SELECT @@global.time_zone")
        (before,) = cursor.fetchone() or ("SYSTEM",)
        try:
            cursor.execute("SET GLOBAL time_zone = '-05:00'")
            assert problems(polling(), "zones.t") == ["SRC160"]
            assert problems(polling(time_zone="-05:00"), "zones.t") == []
            assert problems(polling(), "zones.z") == [], "a TIMESTAMP has the zone of the session"
            cursor.execute("SET GLOBAL time_zone = '+00:00'")
            assert problems(polling(), "zones.t") == []
            named = polling(time_zone="+02:00")
            assert problems(named, "zones.t") == ["SRC160"]
            assert named.source.refused([named.task("zones.t")]) == {}, "programs may write it"
        finally:
            cursor.execute("SET GLOBAL time_zone = %s", (before,))


KEYED = """
CREATE TABLE keyed (id int PRIMARY KEY, k int NOT NULL, half int NOT NULL, maybe int, part int NOT NULL, e int NOT NULL,
  a int NOT NULL, b int NOT NULL, updated_at timestamptz NOT NULL DEFAULT now() - interval '1 minute');
CREATE INDEX ON keyed (updated_at);
CREATE INDEX ON keyed (k);
CREATE UNIQUE INDEX ON keyed (maybe);
CREATE UNIQUE INDEX ON keyed (part) WHERE part > 0;
CREATE UNIQUE INDEX ON keyed ((e + 1));
CREATE UNIQUE INDEX ON keyed (a) INCLUDE (b)
"""


@pytest.mark.parametrize("key", [("k",), ("part",), ("e",), ("k", "half"), ("b",)])
def test_a_key_that_no_unique_index_proves_is_refused(database: Database, key: tuple[str, ...]) -> None:
    database.sql(KEYED, "INSERT INTO keyed VALUES (1, 7, 1, 1, 0, 1, 1, 1), (2, 7, 1, NULL, 0, 2, 2, 1)")
    polling = of(database)
    polling.position = polling.source.open_stream(["public.keyed"])
    assert problems(polling, "public.keyed", key=key) == ["SRC063"]
    with pytest.raises(CheckFailed, match=r"SRC063.*unique"):
        polling.copy(polling.task("public.keyed", key=key))
    with pytest.raises(CheckFailed, match=r"SRC063.*unique"):
        polling.window(polling.task("public.keyed", key=key))


@pytest.mark.parametrize("key", [("a",), ("a", "k"), ("id", "k"), ()])
def test_a_key_that_contains_a_unique_index_is_accepted(database: Database, key: tuple[str, ...]) -> None:
    database.sql(KEYED)
    assert problems(of(database), "public.keyed", key=key) == []


def test_an_index_that_was_never_finished_proves_nothing(database: Database) -> None:
    database.sql(
        "CREATE TABLE half (id int PRIMARY KEY, k int NOT NULL, updated_at timestamptz)",
        "CREATE INDEX ON half (updated_at)",
        "INSERT INTO half VALUES (1, 1), (2, 1)",
    )
    with pytest.raises(Exception, match="duplicated"):
        database.sql("CREATE UNIQUE INDEX CONCURRENTLY ON half (k)")
    assert problems(of(database), "public.half", key=("k",)) == ["SRC063"]


def test_an_index_proves_a_key_in_the_collation_of_its_column(database: Database) -> None:
    """The pages compare keys as the column does. No collation of the tests' server calls texts equal."""
    database.sql(
        'CREATE COLLATION ci FROM "C"',
        "UPDATE pg_collation SET collisdeterministic = false WHERE collname = 'ci'",
        "CREATE TABLE t (id int PRIMARY KEY, k text COLLATE ci NOT NULL, d text NOT NULL, updated_at timestamptz)",
        "CREATE INDEX ON t (updated_at)",
        'CREATE UNIQUE INDEX other ON t (k COLLATE "C")',
        'CREATE UNIQUE INDEX ON t (d COLLATE "C")',
    )
    polling = of(database)
    assert problems(polling, "public.t", key=("k",)) == ["SRC063"]
    assert problems(polling, "public.t", key=("d",)) == [], "both collations tell all texts apart"
    database.sql("CREATE UNIQUE INDEX ON t (k)")
    assert problems(polling, "public.t", key=("k",)) == []


@pytest.mark.since(18)
def test_a_column_whose_not_null_was_never_validated_may_be_null(database: Database) -> None:
    database.sql(
        "CREATE TABLE t (id int PRIMARY KEY, k int UNIQUE, updated_at timestamptz)",
        "CREATE INDEX ON t (updated_at)",
        "INSERT INTO t VALUES (1), (2)",
        "ALTER TABLE t ADD CONSTRAINT filled NOT NULL k NOT VALID, ADD NOT NULL updated_at NOT VALID",
    )
    polling = of(database)
    assert problems(polling, "public.t", key=("k",)) == ["SRC063", "SRC063"]
    polling.position = polling.source.open_stream(["public.t"])
    assert polling.source.status(polling.position, ["public.t"]).has_changes, "rows without a time are in each window"
    database.sql("UPDATE t SET k = id, updated_at = now()", "ALTER TABLE t VALIDATE CONSTRAINT filled")
    assert problems(polling, "public.t", key=("k",)) == []


def test_keys_of_mariadb_are_compared_with_its_indexes(mariadb: EmbeddedMariaDB) -> None:
    with pymysql.connect(
        host=mariadb.host, port=mariadb.port, user=mariadb.user, password=mariadb.password, autocommit=True
    ) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE DATABASE uniques")
        cursor.execute(
            "CREATE TABLE uniques.t (id int PRIMARY KEY, k int NOT NULL, u varchar(9) NOT NULL, n int, "
            "updated_at timestamp(6), INDEX (updated_at), INDEX (k), UNIQUE (u), UNIQUE (n))"
        )
    info = ConnectionInfo("db", mariadb.host, mariadb.port, mariadb.user, mariadb.password, "uniques")
    polling = Polling("mysql+pymysql", info, key_audit=86400)
    assert problems(polling, "uniques.t", key=("k",)) == ["SRC063"]
    assert problems(polling, "uniques.t", key=("n",)) == ["SRC063", "SRC063"]
    assert problems(polling, "uniques.t", key=("u",)) == problems(polling, "uniques.t", key=("k", "u")) == []
