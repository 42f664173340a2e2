"""A PostgreSQL target replaces a table by a new copy: what the table has beside its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import psycopg
import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import Blocked, CdcError
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.targets.database.staging import create_shadow_table, create_staged_table, index_shadow_table
from airflow_cdc_provider.targets.postgres.catalog_kinds import (
    COLUMN_PROPERTIES,
    OBJECTS,
    TABLE_PROPERTIES,
    TEXTS,
)
from airflow_cdc_provider.targets.postgres.server import PostgresServer
from tests.connectors.conftest import Database

COLUMNS = ("id", "team", "salary")
SCHEMA = TableSchema("public.t", tuple(Column(name, LogicalType(Kind.INT32)) for name in COLUMNS), ())
KEYED = TableSchema("public.t", (replace(SCHEMA.columns[0], nullable=False), *SCHEMA.columns[1:]), ("id",))


OLD = f"cdc:{1:08x}" + "0" * 24


class Replaced:
    """The table ``t`` of a target, and a role ``reader``."""

    def __init__(self, database: Database) -> None:
        self.database = database
        server = database.server
        info = ConnectionInfo("db", server.host, server.port, "postgres", server.password, database.name)
        self.target = PostgresServer(info, "public", "r")
        self.copies = 0
        self.reader = f"reader_{database.name}"
        database.sql(f"CREATE ROLE {self.reader} LOGIN PASSWORD 'x'", f"GRANT USAGE ON SCHEMA public TO {self.reader}")
        self.copy()

    def sql(self, *statements: str) -> None:
        self.database.sql(*(statement.replace("reader", self.reader) for statement in statements))

    def copy(self, schema: TableSchema = KEYED) -> None:
        self.copies += 1
        identity, shadow = f"{self.copies:08x}" + "0" * 24, f"_cdc_shadow_{self.copies}"
        create_shadow_table(self.target, shadow, schema, False, identity, ())
        values = ", ".join(("1", "1", "100")[: len(schema.columns)])
        self.database.sql(f"INSERT INTO {shadow} VALUES ({values}, '0')")
        index_shadow_table(self.target, shadow, schema, "t", identity)
        with self.target.session("commit") as connection:
            self.target.swap(connection, shadow, "t", "", self.copies > 1)

    def ask(self, query: str) -> object:
        return self.database.ask(query.replace("reader", self.reader))

    def read(self, columns: str = "*", table: str = "t") -> Sequence[object] | None:
        """What ``reader`` sees; None if it may not read this."""
        server = self.database.server
        with psycopg.connect(server.dsn(self.database.name, self.reader, "x")) as connection:
            try:
                return connection.execute(f"SELECT {columns} FROM public.{table}".encode()).fetchall()
            except psycopg.errors.InsufficientPrivilege:
                return None


@pytest.fixture
def table(database: Database) -> Replaced:
    return Replaced(database)


def test_a_new_copy_hides_the_rows_that_the_old_one_hides(table: Replaced) -> None:
    table.sql(
        "GRANT SELECT ON t TO reader",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY own ON t FOR SELECT TO reader USING (team = 2)",
    )
    assert table.read() == []
    table.copy()
    assert table.read() == []


def test_a_new_copy_shows_no_more_columns_than_the_old_one(table: Replaced) -> None:
    table.sql("GRANT SELECT (id, team) ON t TO reader")
    table.copy()
    assert table.read("id, team") == [(1, 1)] and table.read("salary") is None


def test_default_privileges_do_not_give_back_what_was_revoked(table: Replaced) -> None:
    table.sql("ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO reader")
    table.copy()
    assert table.read() is None


def test_default_privileges_show_no_rows_that_are_being_loaded(table: Replaced) -> None:
    table.sql("ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO reader")
    create_shadow_table(table.target, "copied", KEYED, False, "f" * 32, ())
    create_staged_table(table.target, "staged", KEYED)
    table.sql("INSERT INTO copied VALUES (1, 1, 1, '')", "INSERT INTO staged VALUES (1, 1, 1, '', 'c')")
    assert table.read(table="copied") == table.read(table="staged") == []


def test_default_privileges_show_a_first_copy(table: Replaced) -> None:
    table.sql("DROP TABLE t", "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO reader")
    table.copies = 0
    table.copy()
    assert table.read("id") == [(1,)]


CARRIED = {
    "forced row-level security": (
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
        "SELECT relrowsecurity::text || relforcerowsecurity::text FROM pg_class WHERE oid = 't'::regclass",
    ),
    "a restrictive policy": (
        'CREATE POLICY "a ""b" ON t AS RESTRICTIVE FOR UPDATE TO reader, postgres'
        " USING (team > (SELECT count(*) FROM pg_catalog.pg_am)) WITH CHECK (salary < 5)",
        "SELECT permissive || cmd || roles::text || qual || with_check FROM pg_policies WHERE policyname = 'a \"b'",
    ),
    "privileges": (
        "GRANT SELECT, UPDATE ON t TO reader WITH GRANT OPTION",
        "SELECT relacl::text FROM pg_class WHERE oid = 't'::regclass",
    ),
    "privileges of everybody on a column": (
        "GRANT SELECT (team) ON t TO PUBLIC",
        "SELECT attacl::text FROM pg_attribute WHERE attrelid = 't'::regclass AND attname = 'team'",
    ),
    "an owner": (
        "GRANT CREATE ON SCHEMA public TO reader; ALTER TABLE t OWNER TO reader",
        "SELECT relowner::regrole::text || coalesce(relacl::text, '') FROM pg_class WHERE oid = 't'::regclass",
    ),
    "an owner, and privileges of the login itself": (
        "GRANT CREATE ON SCHEMA public TO reader; ALTER TABLE t OWNER TO reader;"
        " GRANT SELECT ON t TO postgres; GRANT UPDATE (team) ON t TO postgres",
        "SELECT relowner::regrole::text || relacl::text || attacl::text FROM pg_class c, pg_attribute a"
        " WHERE c.oid = 't'::regclass AND a.attrelid = c.oid AND attname = 'team'",
    ),
    "a trigger that is always on": (
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
        " CREATE TRIGGER seen BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION note();"
        " ALTER TABLE t ENABLE ALWAYS TRIGGER seen",
        "SELECT tgenabled::text || pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = 'seen'",
    ),
    "a rule": (
        "CREATE RULE also AS ON DELETE TO t DO ALSO SELECT 1; ALTER TABLE t DISABLE RULE also",
        "SELECT ev_enabled::text || pg_get_ruledef(oid) FROM pg_rewrite WHERE rulename = 'also'",
    ),
    "an index": (
        "CREATE UNIQUE INDEX by_team ON t (team, lower(salary::text)) WHERE team > 0",
        "SELECT indexdef FROM pg_indexes WHERE indexname = 'by_team'",
    ),
    "an index by which the rows are clustered": (
        "CREATE INDEX by_team ON t (team); ALTER TABLE t CLUSTER ON by_team",
        "SELECT indisclustered::text FROM pg_index WHERE indexrelid = 'by_team'::regclass",
    ),
    "constraints": (
        "ALTER TABLE t ADD CONSTRAINT paid CHECK (salary > 0) NOT VALID, ADD CONSTRAINT one UNIQUE (team)",
        "SELECT string_agg(conname || pg_get_constraintdef(oid), ',' ORDER BY conname) FROM pg_constraint"
        " WHERE conrelid = 't'::regclass AND contype IN ('c', 'u')",
    ),
    "a default": (
        "ALTER TABLE t ALTER COLUMN team SET DEFAULT 7",
        "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 't'::regclass",
    ),
    "statistics": (
        "CREATE STATISTICS both_of_t ON team, salary FROM t",
        "SELECT pg_get_statisticsobjdef(oid) FROM pg_statistic_ext WHERE stxname = 'both_of_t'",
    ),
    "a publication": (
        "CREATE PUBLICATION further FOR TABLE t",
        "SELECT tablename::text FROM pg_publication_tables WHERE pubname = 'further'",
    ),
    "comments": (
        "COMMENT ON COLUMN t.team IS 'it''s'; CREATE POLICY p ON t; COMMENT ON POLICY p ON t IS 'why'",
        "SELECT string_agg(description, ',' ORDER BY description) FROM pg_description"
        " WHERE description IN ('it''s', 'why')",
    ),
    "another text in the table's comment": (
        "COMMENT ON TABLE t IS 'Salaries. cdc:00000001000000000000000000000000 Ask HR.'",
        "SELECT regexp_replace(obj_description('t'::regclass), '[0-9a-f]{32}', '')",
    ),
    "storage parameters": (
        "ALTER TABLE t SET (autovacuum_enabled = off, fillfactor = 70, toast.autovacuum_enabled = off)",
        "SELECT string_agg(reloptions::text, ',' ORDER BY reloptions) FROM pg_class c WHERE oid = 't'::regclass"
        " OR oid = (SELECT reltoastrelid FROM pg_class WHERE oid = 't'::regclass)",
    ),
    "settings of a column": (
        "ALTER TABLE t ALTER COLUMN team SET STATISTICS 500, ALTER COLUMN team SET (n_distinct = 3)",
        "SELECT attstattarget || attoptions::text FROM pg_attribute"
        " WHERE attrelid = 't'::regclass AND attname = 'team'",
    ),
    "a replica identity": (
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "SELECT relreplident::text FROM pg_class WHERE oid = 't'::regclass",
    ),
    "a replica identity by an index": (
        "ALTER TABLE t ALTER COLUMN id SET NOT NULL; CREATE UNIQUE INDEX whole ON t (id);"
        " ALTER TABLE t REPLICA IDENTITY USING INDEX whole",
        "SELECT indisreplident::text FROM pg_index WHERE indexrelid = 'whole'::regclass",
    ),
}


@pytest.mark.parametrize("kind", CARRIED)
def test_a_new_copy_has_what_the_old_one_has(table: Replaced, kind: str) -> None:
    statement, query = CARRIED[kind]
    table.sql(statement)
    before = table.ask(query)
    table.copy()
    assert table.ask(query) == before is not None


OF_SALARY = {
    "an index": "CREATE INDEX by_salary ON t ((salary + 1)) WHERE salary > 0",
    "a constraint": "ALTER TABLE t ADD CONSTRAINT paid CHECK (salary > 0)",
    "a policy": "CREATE POLICY by_salary ON t USING (salary > 0)",
    "a trigger": "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
    " CREATE TRIGGER seen BEFORE UPDATE ON t FOR EACH ROW WHEN (NEW.salary > 0) EXECUTE FUNCTION note()",
    "statistics": "CREATE STATISTICS both_of_t ON team, salary FROM t",
}
FOUND = """SELECT (SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass) +
 (SELECT count(*) FROM pg_constraint WHERE conrelid = 't'::regclass AND contype = 'c') +
 (SELECT count(*) FROM pg_policy) + (SELECT count(*) FROM pg_trigger) + (SELECT count(*) FROM pg_statistic_ext)"""


@pytest.mark.parametrize("kind", OF_SALARY)
def test_a_new_copy_with_another_type_and_order_of_columns_has_what_the_old_one_has(table: Replaced, kind: str) -> None:
    """The server prints the same expression with other casts, and lists of columns in the order of the table."""
    table.sql(OF_SALARY[kind])
    before = table.ask(FOUND)
    decimal = replace(KEYED.column("salary"), type=LogicalType(Kind.DECIMAL, 12, 2))
    table.copy(replace(KEYED, columns=(KEYED.column("id"), decimal, KEYED.column("team"))))
    assert table.ask(FOUND) == before


@pytest.mark.since(15)
def test_a_publication_keeps_its_list_of_columns_in_another_order(table: Replaced) -> None:
    table.sql("CREATE PUBLICATION further FOR TABLE t (id, team, salary)")
    table.copy(replace(KEYED, columns=(KEYED.column("id"), KEYED.column("salary"), KEYED.column("team"))))
    found = "SELECT attnames::text FROM pg_publication_tables WHERE pubname = 'further'"
    assert table.ask(found) == "{id,salary,team}"


@pytest.mark.since(15)
def test_a_publication_keeps_its_filter(table: Replaced) -> None:
    table.sql("CREATE PUBLICATION further FOR TABLE t (id, team) WHERE (team > 3)")
    query = "SELECT attnames::text || rowfilter FROM pg_publication_tables WHERE pubname = 'further'"
    before = table.ask(query)
    table.copy()
    assert table.ask(query) == before == "{id,team}(team > 3)"


REFUSED = {
    "view seen": "CREATE VIEW seen AS SELECT * FROM t",
    "constraint other_id_fkey on table other": "CREATE TABLE other (id int REFERENCES t)",
    "policy of_t on table other": "CREATE TABLE other (id int);"
    " CREATE POLICY of_t ON other USING (EXISTS (SELECT FROM t))",
    "sequence numbers": "CREATE SEQUENCE numbers OWNED BY t.team",
    "default value for column total of table t": "ALTER TABLE t ADD total int GENERATED ALWAYS AS (id + team) STORED",
    "table child": "CREATE TABLE child () INHERITS (t)",
    "column x of table other": "CREATE TABLE other (x t)",
    "inherits from table parent": "CREATE TABLE parent (team int); ALTER TABLE t INHERIT parent",
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_new_copy_cannot_have_refuses_it_before_anything_is_written(table: Replaced, what: str) -> None:
    table.sql(REFUSED[what])
    for refuse in (table.copy, lambda: require_replaceable(table)):
        with pytest.raises(Blocked, match="TGT066") as error:
            refuse()
        assert what in error.value.problems[0].found.replace("public.", "")
    assert table.ask("SELECT obj_description('t'::regclass)") == OLD


def require_replaceable(table: Replaced) -> None:
    with table.target.session("probe") as connection:
        table.target.require_replaceable(connection.cursor(), "t")


def test_what_does_not_fit_the_new_columns_refuses_the_copy(table: Replaced) -> None:
    table.sql("CREATE POLICY by_salary ON t USING (salary < 5)")
    with pytest.raises(Blocked, match=r"TGT097.*policy by_salary.*salary"):
        table.copy(replace(KEYED, columns=KEYED.columns[:2]))
    assert table.ask("SELECT obj_description('t'::regclass)") == OLD


def test_a_label_whose_provider_is_not_loaded_refuses_the_copy(table: Replaced) -> None:
    """Without the module of the provider, only the catalog says that the table has a label."""
    table.sql("INSERT INTO pg_seclabel VALUES ('t'::regclass, 'pg_class'::regclass, 0, 'masks', 'MASKED')")
    with pytest.raises(Blocked, match=r"TGT097.*masks"):
        table.copy()
    table.sql("DELETE FROM pg_seclabel")


def test_what_the_role_may_not_create_refuses_the_copy(table: Replaced) -> None:
    table.sql(
        "GRANT CREATE ON SCHEMA public TO reader",
        "CREATE PUBLICATION further FOR TABLE t",
        "ALTER TABLE t OWNER TO reader",
    )
    table.target = replace(table.target, info=replace(table.target.info, login=table.reader, password="x"))
    with pytest.raises(Blocked, match=r"TGT097.*publication further"):
        table.copy()
    assert table.ask("SELECT count(*) FROM pg_publication_tables WHERE tablename = 't'") == 1


def test_privileges_on_a_column_end_with_the_column(table: Replaced) -> None:
    table.sql("GRANT SELECT (id, salary) ON t TO reader", "COMMENT ON COLUMN t.salary IS 'gross'")
    table.copy(replace(KEYED, columns=KEYED.columns[:2]))
    assert table.read("id") == [(1,)]


def test_a_reader_that_stays_is_not_a_refusal(table: Replaced) -> None:
    table.sql("CREATE POLICY p ON t")
    with table.database.connect(autocommit=False) as reader, pytest.MonkeyPatch.context() as patch:
        patch.setattr("airflow_cdc_provider.targets.postgres.server.SWAP_LIMIT_S", 1)
        reader.execute("SELECT FROM t")
        with pytest.raises(CdcError, match="TGT065"):
            table.copy()


ELSEWHERE = {
    "pg_attribute": "its properties have a test of their own",
    "pg_class": "indexes, and the table for long values",
    "pg_depend": "what depends on the table, and refuses its replacement",
    "pg_extension": "tables that an extension dumps",
    "pg_foreign_table": "a table of another server",
    "pg_inherits": "refuses the replacement, in both directions",
    "pg_init_privs": "privileges that an extension gives",
    "pg_largeobject": "belongs to no table",
    "pg_partitioned_table": "a table without rows of its own",
    "pg_sequence": "a sequence of a column depends on the table",
    "pg_shdepend": "the roles of privileges and policies",
    "pg_shdescription": "of roles, databases and tablespaces",
    "pg_shseclabel": "of roles, databases and tablespaces",
    "pg_statistic": "collected for the new copy",
    "pg_statistic_ext_data": "collected for the new copy",
    "pg_subscription_rel": "a table that a subscription writes",
    "pg_type": "the type of its rows: what uses it refuses the replacement",
}


def test_every_catalog_that_names_a_table_is_classified(table: Replaced) -> None:
    """``pg_get_catalog_foreign_keys``: the server's own list of the references between its catalogs."""
    query = (
        "SELECT DISTINCT fktable::regclass::text FROM pg_get_catalog_foreign_keys()"
        " WHERE pktable IN ('pg_class'::regclass, 'pg_attribute'::regclass)"
    )
    assert names(table, query) - {*OBJECTS, *TEXTS} - set(ELSEWHERE) == set()


IDENTITY = {"oid", "relname", "relnamespace", "reltype", "relfilenode", "reltoastrelid", "relispopulated", "relrewrite"}
COUNTED = {"relpages", "reltuples", "relallvisible", "relallfrozen", "relfrozenxid", "relminmxid", "relnatts"}
SHOWS_OBJECTS = {"relhasindex", "relchecks", "relhasrules", "relhastriggers", "relhassubclass"}
KIND = {"reloftype", "relkind", "relispartition", "relpartbound"}
KEPT_BY_THE_COPY = {"relam", "relisshared", "relpersistence"}
"""Of the copy's own: its rows are always logged."""

DEFINED_BY_THE_COPY = {"attname", "atttypid", "atttypmod", "attcollation", "attnotnull", "attndims"}
STORED_BY_TYPE = {"attlen", "attbyval", "attalign"}
POSITION = {"attrelid", "attnum", "attcacheoff", "attisdropped", "atthasmissing", "attmissingval"}
SHOWS_DEFAULTS = {"atthasdef", "attidentity", "attgenerated"}
OF_OTHER_TABLES = {"attfdwoptions", "attislocal", "attinhcount"}

PROPERTIES = {
    "pg_class": {*TABLE_PROPERTIES, *IDENTITY, *COUNTED, *SHOWS_OBJECTS, *KIND, *KEPT_BY_THE_COPY},
    "pg_attribute": {
        *COLUMN_PROPERTIES,
        *DEFINED_BY_THE_COPY,
        *STORED_BY_TYPE,
        *POSITION,
        *SHOWS_DEFAULTS,
        *OF_OTHER_TABLES,
    },
}


@pytest.mark.parametrize("catalog", PROPERTIES)
def test_every_property_of_a_table_and_of_a_column_is_classified(table: Replaced, catalog: str) -> None:
    query = "SELECT attname::text FROM pg_attribute WHERE attrelid = '{}'::regclass AND attnum > 0"
    assert names(table, query.format(catalog)) - PROPERTIES[catalog] == set()


def names(table: Replaced, query: str) -> set[str]:
    return {name for (name,) in table.database.connection.execute(query.encode()).fetchall()}
