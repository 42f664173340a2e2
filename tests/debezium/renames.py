"""Statements that rename columns and tables, as a connector repeats them in its schema-change topic."""

from __future__ import annotations

import pymysql

from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from tests.debezium.mariadb_changes import DATABASE, connector

PREFIX = "renames"
CONNECTORS = {
    "mariadb": "io.debezium.connector.mariadb.MariaDbConnector",
    "mysql": "io.debezium.connector.mysql.MySqlConnector",
}
STATEMENTS = (
    "CREATE TABLE t (id int PRIMARY KEY, v varchar(10) NOT NULL DEFAULT 'x', w int)",
    "ALTER TABLE t RENAME COLUMN v TO v2",
    "ALTER TABLE t CHANGE COLUMN v2 v3 varchar(20) NOT NULL, ADD COLUMN z int FIRST",
    "/* by an application */ ALTER TABLE `shop`.`t` -- why\n CHANGE `V3` `v 4` text, DROP w",
    "RENAME TABLE t TO t2",
    "CREATE TABLE shadow LIKE t2",
    "RENAME TABLE t2 TO t2_old, shadow TO t2",
    "DROP TABLE t2_old",
    "ALTER TABLE t2 RENAME AS t3",
    "ALTER TABLE t3 RENAME TO `t 4`, RENAME COLUMN `v 4` TO v5",
    "CREATE DATABASE other",
    "RENAME TABLE `t 4` TO other.t5",
    "RENAME TABLE other.t5 TO t6",
    "ALTER TABLE t6 ADD INDEX (z)",
    "ALTER TABLE t6 COMMENT 'RENAME COLUMN z TO y'",
    "CREATE INDEX i ON t6 (id, z)",
    "DROP INDEX i ON t6",
    "TRUNCATE TABLE t6",
)


def prepare(server: EmbeddedMariaDB) -> None:
    """A table that exists when the connector starts."""
    _execute(server, f"CREATE DATABASE {DATABASE}", f"CREATE TABLE {DATABASE}.first (id int PRIMARY KEY, v int)")


def apply_changes(server: EmbeddedMariaDB) -> None:
    _execute(server, f"USE {DATABASE}", *STATEMENTS)


def settings(server: EmbeddedMariaDB, kind: str) -> dict[str, str]:
    return connector(server, PREFIX) | {"connector.class": CONNECTORS[kind]}


def _execute(server: EmbeddedMariaDB, *statements: str) -> None:
    with (
        pymysql.connect(
            host=server.host, port=server.port, user=server.user, password=server.password, autocommit=True
        ) as session,
        session.cursor() as cursor,
    ):
        for statement in statements:
            cursor.execute(statement)
