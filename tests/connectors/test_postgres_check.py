"""``check`` against real servers: every problem at once, and the statement it contains solves it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from airflow_cdc_provider.connectors.sources.postgres.source import PostgresSource
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed, Problem, SourceUnavailable
from airflow_cdc_provider.core.spec.definition import Comparison, Condition, Source
from airflow_cdc_provider.core.spec.snapshot import Snapshot, SnapshotMode
from airflow_cdc_provider.sandbox.ports import free_ports
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.connectors.conftest import Database, ends

ACTIVE = Condition("active", Comparison.EQUAL, True)


def codes(problems: list[Problem]) -> list[str]:
    return [problem.code for problem in problems]


def apply_remedies(database: Database, problems: list[Problem]) -> None:
    for problem in problems:
        database.sql(*(part for part in problem.do.split(";") if part.strip()))


@pytest.fixture
def role(database: Database) -> Iterator[tuple[str, str]]:
    """A login without any rights."""
    name, password = f"reader_{database.name}", secrets.token_urlsafe(12)
    database.sql(f"CREATE ROLE {name} LOGIN PASSWORD '{password}'")
    yield name, password
    database.sql(f"DROP OWNED BY {name}", f"DROP ROLE {name}")


def test_a_ready_source_has_no_problems(database: Database) -> None:
    database.sql("CREATE TABLE item (id int PRIMARY KEY)")
    database.publish("item")
    assert database.source.check([database.task("public.item")]) == []


def test_every_remedy_of_a_table_works(database: Database) -> None:
    database.sql(
        "CREATE TABLE keyless (a int)",
        "CREATE TABLE mute (id int PRIMARY KEY)",
        "ALTER TABLE mute REPLICA IDENTITY NOTHING",
        "CREATE TABLE filtered (id int PRIMARY KEY, active bool)",
        "CREATE TABLE partly (id int PRIMARY KEY)",
        "CREATE TABLE other_key (id int PRIMARY KEY, code text)",
        "CREATE TABLE fleeting (id int PRIMARY KEY) ",
        "ALTER TABLE fleeting SET UNLOGGED",
        "CREATE TABLE late_key (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)",
        "CREATE TABLE swapped (id int PRIMARY KEY DEFERRABLE)",
        "CREATE TABLE part (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (10)",
        "ALTER TABLE part_1 REPLICA IDENTITY NOTHING",
        "CREATE PUBLICATION cdc FOR TABLE mute, part WITH (publish = 'insert')",
    )
    tasks = [
        database.task("public.keyless"),
        database.task("public.mute"),
        database.task("public.filtered", where=[ACTIVE]),
        database.task("public.partly", snapshot=Snapshot(SnapshotMode.SCHEMA_ONLY)),
        database.task("public.other_key", key=["code"]),
        database.task("public.fleeting"),
        database.task("public.late_key"),
        database.task("public.swapped", key=["id"]),
        database.task("public.part"),
    ]
    problems = database.source.check(tasks)
    of_tables = {(problem.code, problem.where.split(".")[-1]) for problem in problems if problem.where[:6] == "public"}
    assert of_tables == {
        ("SRC009", "keyless"),
        ("SRC009", "mute"),
        ("SRC009", "filtered"),
        ("SRC009", "partly"),
        ("SRC009", "other_key"),
        ("SRC170", "other_key"),
        ("SRC009", "part"),
        ("SRC016", "late_key"),
        ("SRC016", "swapped"),
        ("SRC017", "fleeting"),
        *(
            ("SRC008", name)
            for name in ("keyless", "filtered", "partly", "other_key", "fleeting", "late_key", "swapped")
        ),
    }
    assert {"SRC005", "SRC007"} <= set(codes(problems))
    apply_remedies(database, problems)
    assert database.source.check(tasks) == []


def test_further_columns_of_an_index_are_not_in_the_stream(database: Database) -> None:
    database.sql(
        "CREATE TABLE by_index (id int PRIMARY KEY, code text NOT NULL)",
        "CREATE UNIQUE INDEX by_code ON by_index (code) INCLUDE (id)",
        "ALTER TABLE by_index REPLICA IDENTITY USING INDEX by_code",
        "CREATE TABLE by_key (id int, code text NOT NULL UNIQUE, PRIMARY KEY (id) INCLUDE (code))",
        "CREATE TABLE late (id int, code text NOT NULL UNIQUE, PRIMARY KEY (id) INCLUDE (code) DEFERRABLE)",
    )
    database.publish("by_index", "by_key", "late")
    tasks = [
        database.task("public.by_index"),
        database.task("public.by_key", key=["code"]),
        database.task("public.late", key=["id"]),
    ]
    problems = database.source.check(tasks)
    assert {(problem.code, problem.where) for problem in problems} == {
        ("SRC009", "public.by_index"),
        ("SRC009", "public.by_key"),
        ("SRC016", "public.late"),
    }


def test_a_missing_publication_is_reported_with_its_tables(database: Database) -> None:
    database.sql('CREATE TABLE "It em" (id int PRIMARY KEY)')
    tasks = [database.task("public.It em")]
    problems = database.source.check(tasks)
    assert codes(problems) == ["SRC004"]
    assert 'FOR TABLE "public"."It em"' in problems[0].do
    apply_remedies(database, problems)
    assert database.source.check(tasks) == []


def test_all_missing_rights_are_reported_with_their_grants(database: Database, role: tuple[str, str]) -> None:
    database.sql(
        "CREATE SCHEMA shop",
        "CREATE TABLE shop.item (id int PRIMARY KEY)",
        "CREATE TABLE shop.guarded (id int PRIMARY KEY)",
        "ALTER TABLE shop.guarded ENABLE ROW LEVEL SECURITY",
    )
    database.publish("shop.item", "shop.guarded")
    tasks = [database.task("shop.item"), database.task("shop.guarded")]
    source = database.source_as(*role)
    problems = source.check(tasks)
    assert sorted(codes(problems)) == ["SRC010"] * 4 + ["SRC011", "SRC025"]
    apply_remedies(database, problems)
    assert source.check(tasks) == []
    database.sql(f"REVOKE SELECT ON shop.item FROM {role[0]}")
    assert codes(source.check(tasks)) == ["SRC010"]


def test_a_role_with_only_the_granted_rights_can_read_everything(database: Database, role: tuple[str, str]) -> None:
    database.sql(
        "CREATE TABLE item (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE item_1 PARTITION OF item FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE outside (id int PRIMARY KEY)",
        f"ALTER ROLE {role[0]} REPLICATION",
        f"GRANT SELECT ON item, outside TO {role[0]}",
    )
    database.publish("item")
    source, task = database.source_as(*role), database.task("public.item")
    assert source.check([task]) == []
    start = source.open_stream(["public.item"])
    database.sql("INSERT INTO item VALUES (1)")
    assert source.identity() == database.source.identity()
    assert source.status(start, ["public.item"]).has_changes
    (split,) = source.splits(start, database.now())
    items = list(source.read(split, [task], 1))
    with source.copy(task, 1, {}, 1) as copy:
        (rows,) = source.read_split(copy.read.splits[0], copy.schema)
        assert rows.to_pylist() == [{"id": 1}]
    source.acknowledge(ends(items)[-1])
    with pytest.raises(CheckFailed, match=r'SRC008.*ALTER PUBLICATION "cdc" ADD TABLE "public"\."outside"'):
        source.open_stream(["public.item", "public.outside"])
    source.drop_stream()


@pytest.mark.since(15)
def test_a_publication_with_a_row_filter_is_refused(database: Database) -> None:
    database.sql(
        "CREATE TABLE item (id int PRIMARY KEY, a int)", "CREATE PUBLICATION cdc FOR TABLE item WHERE (id > 5)"
    )
    tasks = [database.task("public.item")]
    problems = database.source.check(tasks)
    assert codes(problems) == ["SRC006"]
    database.sql(*problems[0].do.split("; ")[:2])
    assert database.source.check(tasks) == []


def test_a_filter_that_is_never_true_is_refused(database: Database) -> None:
    database.sql("CREATE TABLE item (id int PRIMARY KEY, active bool)", "ALTER TABLE item REPLICA IDENTITY FULL")
    database.publish("item")
    task = database.task("public.item", where=[Condition("active", Comparison.EQUAL, "yes")])
    assert codes(database.source.check([task])) == ["SRC018"]


def test_a_missing_table_and_a_view_are_reported(database: Database) -> None:
    database.sql("CREATE TABLE item (id int PRIMARY KEY)", "CREATE TABLE gone (id int PRIMARY KEY)")
    database.publish("item")
    gone, item = database.task("public.gone"), database.task("public.item")
    database.sql("DROP TABLE gone")
    assert codes(database.source.check([gone, item])) == ["SRC019"]
    database.sql("CREATE VIEW gone AS SELECT 1 AS id")
    assert codes(database.source.check([gone, item])) == ["SRC017"]


def test_a_slot_of_another_kind_is_reported(database: Database) -> None:
    database.sql("CREATE TABLE item (id int PRIMARY KEY)")
    database.publish("item")
    task = database.task("public.item")
    name = f"physical_{database.name}"
    database.sql(f"SELECT pg_create_physical_replication_slot('{name}')")
    assert codes(database.source_as("postgres", database.server.password, slot=name).check([task])) == ["SRC014"]
    database.sql(f"SELECT pg_drop_replication_slot('{name}')")


def test_a_server_without_logical_decoding_is_reported_with_all_settings() -> None:
    settings = {"wal_level": "replica", "max_replication_slots": "1", "max_wal_senders": "0"}
    with EmbeddedPostgres(settings) as server:
        database = Database(server)
        database.sql("CREATE TABLE item (id int PRIMARY KEY)")
        problems = database.source.check([database.task("public.item")])
        assert codes(problems) == ["SRC001", "SRC002", "SRC003", "SRC004"]
        with (
            pytest.raises(SourceUnavailable, match=r"SRC026.*max_wal_senders"),
            database.source.client.session("read", replication=True),
        ):
            pass
        database.connection.close()


def test_a_wrong_password_is_reported_without_the_password(database: Database) -> None:
    source = database.source_as("postgres", "not-the-password")
    (problem,) = source.check([])
    assert problem.code == "CON009" and "not-the-password" not in str(problem)
    with pytest.raises(CheckFailed, match="CON009"):
        source.identity()


def test_a_missing_database_is_reported(database: Database) -> None:
    info = ConnectionInfo(
        "db", database.server.host, database.server.port, "postgres", database.server.password, "nowhere"
    )
    with pytest.raises(CheckFailed, match="CON011"):
        PostgresSource(Source("postgres", "db", options={"publication": "cdc"}), info, "r").identity()


def test_an_unreachable_server_can_be_retried() -> None:
    info = ConnectionInfo("db", "127.0.0.1", free_ports(1)[0], "postgres", "x", "nowhere")
    with pytest.raises(SourceUnavailable, match="CON010"):
        PostgresSource(Source("postgres", "db", options={"publication": "cdc"}), info, "r").check([])
