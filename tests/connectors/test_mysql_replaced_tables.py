"""A MySQL target replaces a table by a new copy: what the table has beside its rows."""

from __future__ import annotations

import itertools

import pymysql
import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import Blocked
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.targets.database.staging import create_shadow_table, index_shadow_table
from airflow_cdc_provider.targets.mysql.server import MysqlServer

KINDS = {"id": Kind.INT32, "team": Kind.INT32, "note": Kind.JSON}
SCHEMA = TableSchema(
    "t", tuple(Column(name, LogicalType(kind), nullable=name != "id") for name, kind in KINDS.items()), ("id",)
)
NUMBERS = itertools.count(1)


class Replaced:
    """The table ``t`` of a target."""

    def __init__(self, server: EmbeddedMariaDB) -> None:
        self.server, self.name, self.copies = server, f"warehouse{next(NUMBERS)}", 0
        info = ConnectionInfo("db", server.host, server.port, server.user, server.password)
        self.target = MysqlServer(info, self.name, "r")
        self.sql("CREATE DATABASE {name}")
        self.copy()

    def sql(self, *statements: str, user: str = "", password: str = "") -> list[tuple[object, ...]]:
        """The rows of the last statement. ``{name}``: of the database."""
        login, secret = (user, password) if user else (self.server.user, self.server.password)
        with (
            pymysql.connect(host=self.server.host, port=self.server.port, user=login, password=secret) as connection,
            connection.cursor() as cursor,
        ):
            for statement in statements:
                cursor.execute(statement.format(name=self.name))
            connection.commit()
            return list(cursor.fetchall())

    def copy(self) -> None:
        self.copies += 1
        identity, shadow = f"{self.copies:08x}" + "0" * 24, f"shadow{self.copies}"
        create_shadow_table(self.target, shadow, SCHEMA, False, identity, ())
        self.sql(f"INSERT INTO {{name}}.{shadow} VALUES (1, 1, NULL, '0')")
        index_shadow_table(self.target, shadow, SCHEMA, "t", identity)
        with self.target.session("commit") as connection:
            self.target.swap(connection, shadow, "t", f"old{self.copies}", self.copies > 1)

    def require_replaceable(self) -> None:
        with self.target.session("probe") as connection:
            self.target.require_replaceable(connection.cursor(), "t")


@pytest.fixture
def table(mariadb: EmbeddedMariaDB) -> Replaced:
    return Replaced(mariadb)


def test_privileges_on_columns_belong_to_the_name(table: Replaced) -> None:
    reader = f"reader_{table.name}"
    table.sql(f"CREATE USER {reader} IDENTIFIED BY 'x'", f"GRANT SELECT (id) ON {{name}}.t TO {reader}")
    table.copy()
    assert table.sql("SELECT id FROM {name}.t", user=reader, password="x") == [(1,)]
    with pytest.raises(pymysql.OperationalError, match="team"):
        table.sql("SELECT team FROM {name}.t", user=reader, password="x")


def test_a_table_as_it_was_copied_can_be_replaced(table: Replaced) -> None:
    table.sql("CREATE INDEX by_team ON {name}.t (team)")
    table.require_replaceable()


REFUSED = {
    "trigger zeroes": "CREATE TRIGGER {name}.zeroes BEFORE INSERT ON {name}.t FOR EACH ROW SET NEW.team = 0",
    "constraint to_us of table other": "CREATE TABLE {name}.other (id INT, CONSTRAINT to_us FOREIGN KEY (id)"
    " REFERENCES {name}.t (id))",
    "constraint one_of of table t": "CREATE TABLE {name}.teams (id INT PRIMARY KEY);"
    "INSERT INTO {name}.teams VALUES (1);"
    "ALTER TABLE {name}.t ADD CONSTRAINT one_of FOREIGN KEY (team) REFERENCES {name}.teams (id)",
    "constraint positive of table t": "ALTER TABLE {name}.t ADD CONSTRAINT positive CHECK (team > 0)",
    "computed column twice": "ALTER TABLE {name}.t ADD twice INT AS (team * 2) VIRTUAL",
    "partition high": "ALTER TABLE {name}.t PARTITION BY RANGE (id)"
    " (PARTITION low VALUES LESS THAN (10), PARTITION high VALUES LESS THAN MAXVALUE)",
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_new_copy_cannot_have_refuses_it_before_anything_is_written(table: Replaced, what: str) -> None:
    table.sql(*REFUSED[what].split(";"))
    for refuse in (table.require_replaceable, table.copy):
        with pytest.raises(Blocked, match="TGT066") as error:
            refuse()
        assert error.value.problems[0].found == what
    comment = "SELECT table_comment FROM information_schema.tables WHERE table_schema = '{name}' AND table_name = 't'"
    assert table.sql(comment)[0][0] == f"cdc:{1:08x}" + "0" * 24


def test_another_text_in_the_comment_stays(table: Replaced) -> None:
    table.sql("ALTER TABLE {name}.t COMMENT 'Salaries. cdc:00000001000000000000000000000000'")
    table.copy()
    found = table.sql("SHOW CREATE TABLE {name}.t")[0][1]
    assert f"COMMENT='Salaries. cdc:{2:08x}" in str(found)
