"""Sessions with a PostgreSQL state store: what a role or a database sets for them, poolers, conflicts."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psycopg
import pytest
import sqlalchemy as sa

from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.errors import StateUnavailable
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from airflow_cdc_provider.state import database, tables
from airflow_cdc_provider.state.store import StateStore

pytestmark = pytest.mark.server

HOSTILE = {
    "default_transaction_isolation": "serializable",
    "default_transaction_read_only": "on",
    "default_transaction_deferrable": "on",
    "statement_timeout": "300ms",
    "idle_in_transaction_session_timeout": "300ms",
    "lock_timeout": "100ms",
    "extra_float_digits": "-3",
    "standard_conforming_strings": "off",
    "client_encoding": "LATIN1",
}


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres() as server:
        yield server


@pytest.fixture
def name(server: EmbeddedPostgres) -> str:
    name = f"state_{uuid.uuid4().hex}"
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return name


def store_of(server: EmbeddedPostgres, name: str) -> StateStore:
    return StateStore(f"postgresql+psycopg://{server.user}:{server.password}@127.0.0.1:{server.port}/{name}")


@pytest.fixture
def store(server: EmbeddedPostgres, name: str) -> StateStore:
    return store_of(server, name)


@pytest.fixture
def hostile(server: EmbeddedPostgres, name: str) -> StateStore:
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        for setting, value in HOSTILE.items():
            connection.execute(f"ALTER DATABASE {name} SET {setting} = '{value}'")
    return store_of(server, name)


def row(number: int) -> TableRow:
    return TableRow(f"public.t{number}", "t", TableState.REPLICATING)


def test_a_session_inherits_no_setting(hostile: StateStore) -> None:
    command = hostile.request("shop", CommandKind.PAUSE, (), {"reason": "a\\b, 漢"}, "key", "ann")
    assert hostile.command(command.id) == command
    with hostile.database.transaction() as connection:
        connection.execute(sa.text("SELECT pg_sleep(0.5)"))
        values = {"replicator": "shop", "lane": "copy", "holder": "r1", "expires": 1234567890.1234567}
        connection.execute(tables.leases.insert().values(**values))
        [found] = connection.execute(sa.select(tables.leases.c.expires)).scalars()
    assert found == 1234567890.1234567


def test_concurrent_writers_of_a_session_with_another_isolation_lose_nothing(hostile: StateStore) -> None:
    hostile.change_tables("shop", lambda _: [row(number) for number in range(6)])

    def count(number: int) -> None:
        for _ in range(5):
            hostile.change_tables("shop", lambda rows: [replace(one, window=one.window + 1) for one in rows.values()])

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(count, range(3)))
    assert {one.window for one in hostile.tables("shop").values()} == {15}


def test_a_setting_ends_with_its_transaction(hostile: StateStore) -> None:
    """A pooler gives the session to other clients."""
    hostile.owner()
    engine = hostile.database._engine
    assert engine is not None
    with engine.connect() as connection:
        with connection.begin():
            assert connection.exec_driver_sql("SHOW lock_timeout").scalar_one() == "0"
        raw = connection.connection.driver_connection
        assert raw is not None and raw.execute("SHOW lock_timeout").fetchone() == ("100ms",)


def test_no_statement_is_prepared(store: StateStore) -> None:
    """A pooler gives the next transaction another session, which has other prepared statements."""
    with store.database.transaction() as connection:
        for number in range(9):
            connection.execute(sa.select(tables.leases).where(tables.leases.c.lane == str(number)))
        assert connection.exec_driver_sql("SELECT count(*) FROM pg_prepared_statements").scalar_one() == 0


@pytest.mark.parametrize("code", ["40001", "40P01"])
def test_a_transaction_that_the_database_ends_for_others_is_repeated(store: StateStore, code: str) -> None:
    store.owner()
    with store.database.transaction() as connection:
        connection.exec_driver_sql("CREATE SEQUENCE tries")
        connection.exec_driver_sql(
            "CREATE FUNCTION ended() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF nextval('tries') < 3 THEN "
            f"RAISE EXCEPTION 'ended' USING ERRCODE = '{code}'; END IF; RETURN NEW; END $$"
        )
        connection.exec_driver_sql("CREATE TRIGGER t BEFORE INSERT ON cdc_audit FOR EACH ROW EXECUTE FUNCTION ended()")
    store.write_audit("shop", "ann", "fence", {})
    assert len(store.audit("shop", 9)) == 1
    with store.database.transaction() as connection:
        connection.exec_driver_sql("SELECT setval('tries', 1)")
        connection.exec_driver_sql("ALTER SEQUENCE tries INCREMENT BY -1 MINVALUE -99")
    with pytest.raises(StateUnavailable, match=r"STA010.*nothing: the next try repeats it"):
        store.write_audit("shop", "ann", "fence", {})
    with store.database.transaction() as connection:
        assert connection.exec_driver_sql("SELECT last_value FROM tries").scalar_one() == 1 - database.TRIES


def test_a_key_in_use_is_no_outage_of_the_store(store: StateStore) -> None:
    again = tables.positions.insert().values(replicator="shop", body="{}")
    store.positions.update("shop")
    with pytest.raises(sa.exc.IntegrityError), store.database.transaction() as connection:
        connection.execute(again)
