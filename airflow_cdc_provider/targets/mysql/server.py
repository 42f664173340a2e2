"""Sessions with a MySQL or MariaDB server.

DDL statements commit implicitly. So the lock of a table belongs to the session (GET_LOCK), and a new copy is swapped in
by one RENAME of both tables after its control row is committed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, ClassVar
from urllib.parse import quote

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.mysql_access import mysql_tls, tls_warnings
from airflow_cdc_provider.core.connections.mysql_errors import CONSTRAINTS, meaning
from airflow_cdc_provider.core.connections.mysql_session import (
    DEFAULT_PORT,
    code_and_message,
    error_code,
    open_session,
    server_address,
)
from airflow_cdc_provider.core.connections.mysql_settings import SETTINGS, settings_statement
from airflow_cdc_provider.core.errors import CdcError, Problem
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.registry import load_library
from airflow_cdc_provider.core.table.schema import Column
from airflow_cdc_provider.targets.database import errors
from airflow_cdc_provider.targets.database.limits import Limits
from airflow_cdc_provider.targets.database.named_locks import NamedLocks
from airflow_cdc_provider.targets.database.names import new_comment
from airflow_cdc_provider.targets.database.server import (
    COMMITTING,
    IDLE_LIMIT_S,
    LOCK_LIMIT_S,
    SWAP_LIMIT_S,
    JdbcAddress,
)
from airflow_cdc_provider.targets.mysql.dependents import dependents
from airflow_cdc_provider.targets.mysql.options import Floats
from airflow_cdc_provider.targets.mysql.sql import MysqlSql

OLDEST = {"MySQL": (8, 0), "MariaDB": (10, 6)}
COLLATIONS = {"MySQL": "utf8mb4_0900_bin", "MariaDB": "utf8mb4_nopad_bin"}
BY_CHARACTERS = frozenset({*COLLATIONS.values(), "ascii_bin", "binary"})
NO_NAME = re.compile(r"[\0\U00010000-\U0010ffff]|[ \t\n\v\f\r]\Z")
"""What no name of the server has: U+0000, characters of four bytes, white space at its end."""

INTEGER = re.compile(r"^((?:tiny|small|medium|big)?int)\(\d+\)")
STATEMENT_BYTES = 1_000_000
"""Size of one INSERT: well below the smallest default of max_allowed_packet."""

CHANGES_OF_ROWS = """
SELECT CONCAT('trigger ', trigger_name), '' FROM information_schema.triggers
WHERE event_object_schema = %(schema)s AND event_object_table = %(table)s AND action_timing = 'BEFORE'
UNION ALL SELECT CONCAT('column ', column_name, ' ', extra), column_name FROM information_schema.columns
WHERE table_schema = %(schema)s AND table_name = %(table)s AND extra LIKE '%%on update%%'
"""
VALUE_REJECTED = frozenset({1071, 1118, 1264, 1265, 1292, 1366, 1406, 3140})
LOCK_WAIT = frozenset({1205})


class MysqlServer(NamedLocks):
    limits: ClassVar[Limits] = Limits(64, True, NO_NAME, columns=1017, key_columns=16, key_bytes=3072)
    swaps_under_lock: ClassVar[bool] = True
    alters_in_transactions: ClassVar[bool] = False

    def __init__(self, info: ConnectionInfo, schema: str, replicator: str, floats: Floats = Floats.NUMBER) -> None:
        self.info = info
        self.schema = schema
        self.replicator = replicator
        self.floats = floats

    @cached_property
    def sql(self) -> MysqlSql:
        """Queries the server once for its product."""
        with self.session("probe") as connection:
            cursor = connection.cursor()
            return MysqlSql(self.schema, self.floats, COLLATIONS[self._version(cursor)[0]])

    @property
    def address(self) -> str:
        return server_address(self.info)

    @contextmanager
    def session(self, purpose: str, window: int | None = None) -> Iterator[Any]:
        pymysql = _pymysql()
        try:
            with open_session(
                pymysql,
                self.info,
                errors,
                database=self.schema,
                init_command=settings_statement(own_settings(purpose)),
                program_name=f"cdc:{self.replicator}:{purpose}",
                # An UPDATE counts rows that it matches, even if it does not change them.
                client_flag=pymysql.constants.CLIENT.FOUND_ROWS,
            ) as connection:
                yield connection
        except pymysql.Error as error:
            raise self._translate(error) from error

    def comment(self, cursor: Any, table: str) -> str | None:
        query = "SELECT table_comment FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
        cursor.execute(query, (self.schema, table))
        row = cursor.fetchone()
        return str(row[0]) if row else None

    def columns(self, cursor: Any, table: str) -> list[str]:
        query = "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s"
        cursor.execute(query, (self.schema, table))
        return [str(name) for (name,) in cursor.fetchall()]

    def declared_types(self, cursor: Any, table: str) -> Mapping[str, str]:
        query = (
            "SELECT column_name, column_type FROM information_schema.columns"
            " WHERE table_schema = %s AND table_name = %s"
        )
        cursor.execute(query, (self.schema, table))
        return {self.sql.column_id(str(name)): catalog_text(str(kind)) for name, kind in cursor.fetchall()}

    def catalog_type(self, column: Column, in_key: bool) -> str:
        return catalog_text(self.sql.column_type(column, in_key).partition(" CHARACTER SET")[0])

    def tables_like(self, cursor: Any, prefix: str) -> list[str]:
        query = "SELECT table_name FROM information_schema.tables WHERE table_schema = %s"
        cursor.execute(query, (self.schema,))
        return [str(name) for (name,) in cursor.fetchall() if str(name).startswith(prefix)]

    def other_collations(self, cursor: Any, table: str) -> list[str]:
        query = (
            "SELECT column_name, collation_name FROM information_schema.columns"
            " WHERE table_schema = %s AND table_name = %s AND collation_name IS NOT NULL ORDER BY ordinal_position"
        )
        cursor.execute(query, (self.schema, table))
        return [f"{name} {collation}" for name, collation in cursor.fetchall() if collation not in BY_CHARACTERS]

    def changes_of_rows(self, cursor: Any, table: str, columns: Collection[str]) -> list[str]:
        cursor.execute(CHANGES_OF_ROWS, {"schema": self.schema, "table": table})
        own = {*map(self.sql.column_id, columns), ""}
        return sorted(str(found) for found, column in cursor.fetchall() if self.sql.column_id(column) in own)

    def existing(self, cursor: Any, tables: Collection[str]) -> Collection[str]:
        return set(self.tables_like(cursor, "")) & set(tables)

    def _lock(self, cursor: Any, name: str) -> None:
        cursor.execute("SELECT GET_LOCK(%s, %s)", (hashlib.sha256(name.encode()).hexdigest()[:40], LOCK_LIMIT_S))
        if cursor.fetchone()[0] != 1:
            raise errors.busy(self.address, f"no lock within {LOCK_LIMIT_S} s", ends_idle=True)

    def index_and_analyze(self, cursor: Any, table: str, index: Sequence[str], unique: bool, constraint: str) -> None:
        names, full = ", ".join(map(self.sql.quoted, index)), self.sql.table(table)
        if unique:
            cursor.execute(f"ALTER TABLE {full} ADD PRIMARY KEY ({names})")
        elif index:
            cursor.execute(f"CREATE INDEX {self.sql.quoted(constraint)} ON {full} ({names})")
        cursor.execute(f"ANALYZE TABLE {full}")
        cursor.fetchall()

    def swap(self, connection: Any, shadow: str, table: str, replaced: str, exists: bool) -> None:
        """The control row of the new copy is committed first: it takes effect when a table with its identity has the
        name. One RENAME of both tables then changes rows and cursor at once."""
        cursor = connection.cursor()
        failpoint("copy.before_swap")
        if exists:
            self.require_replaceable(cursor, table)
        connection.commit()
        failpoint("copy.in_swap")
        if exists:
            text = new_comment(self.comment(cursor, table) or "", self.comment(cursor, shadow) or "")
            cursor.execute(self.sql.comment_table(shadow, text))
        renamed = [(table, replaced), (shadow, table)] if exists else [(shadow, table)]
        moves = ", ".join(f"{self.sql.table(old)} TO {self.sql.table(new)}" for old, new in renamed)
        cursor.execute(f"RENAME TABLE {moves}")
        failpoint("copy.after_swap")
        if exists:
            self.drop_if_unused(connection, replaced)

    def require_replaceable(self, cursor: Any, table: str) -> None:
        if found := dependents(cursor, self.schema, table):
            raise errors.dependent_objects(self.address, ", ".join(found))

    def drop_if_unused(self, connection: Any, table: str) -> bool:
        pymysql = _pymysql()
        cursor = connection.cursor()
        cursor.execute("SET SESSION lock_wait_timeout = 1")
        try:
            cursor.execute(f"DROP TABLE IF EXISTS {self.sql.table(table)}")
        except pymysql.OperationalError as error:
            if error.args[0] not in LOCK_WAIT:
                raise
            return False
        finally:
            cursor.execute(f"SET SESSION lock_wait_timeout = {SWAP_LIMIT_S}")
        return True

    def insert_if_absent(self, table: str, columns: Sequence[str]) -> str:
        names, values = ", ".join(map(self.sql.quoted, columns)), ", ".join("%s" for _ in columns)
        return f"INSERT IGNORE INTO {self.sql.table(table)} ({names}) VALUES ({values})"

    def copy_in(self, connection: Any, table: str, columns: Mapping[str, bool], batches: Iterable[Any]) -> int:
        from pymysql.converters import escape_string

        def literal(text: str | None, binary: bool) -> str:
            if text is None:
                return "NULL"
            return f"X'{text}'" if binary else f"'{escape_string(text)}'"

        head = f"INSERT INTO {self.sql.table(table)} ({', '.join(map(self.sql.quoted, columns))}) VALUES "
        cursor, rows, kinds = connection.cursor(), 0, list(columns.values())
        values: list[str] = []
        size = 0
        for batch in batches:
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                value = "(" + ",".join(map(literal, row, kinds)) + ")"
                values.append(value)
                size += len(value)
                if size > STATEMENT_BYTES:
                    cursor.execute(head + ",".join(values))
                    values, size = [], 0
            rows += batch.num_rows
        if values:
            cursor.execute(head + ",".join(values))
        return rows

    def jdbc(self) -> JdbcAddress:
        """MariaDB's driver, which supports both servers; Spark recognises the dialect by the name ``mysql`` only."""
        server = f"{self.info.host}:{self.info.port or DEFAULT_PORT}"
        options = "permitMysqlScheme=true&tinyInt1isBit=false&useBulkStmts=false"
        if tls := mysql_tls(self.info):
            options += f"&{tls.jdbc()}"
        return JdbcAddress(
            f"jdbc:mysql://{server}/{quote(self.schema, safe='')}?{options}",
            "org.mariadb.jdbc.Driver",
            self.info.login,
            self.info.password,
            settings_statement(own_settings("read")),
        )

    def server_problems(self, cursor: Any) -> Iterable[Problem]:
        kind, version, text = self._version(cursor)
        if version < OLDEST[kind]:
            allowed = ", ".join(f"{name} {'.'.join(map(str, oldest))}" for name, oldest in OLDEST.items())
            yield Problem("TGT050", "the server is too old", self.address, text, f"{allowed} or later")
        cursor.execute("SELECT @@binlog_format, @@log_bin")
        form, logged = cursor.fetchone()
        if logged and form == "STATEMENT":
            do = "SET GLOBAL binlog_format = 'ROW'"
            found = "binlog_format STATEMENT"
            yield Problem("TGT053", "replicas would execute our statements again", self.address, found, do=do)

    def tls_warnings(self) -> list[Problem]:
        return tls_warnings(self.info)

    def _version(self, cursor: Any) -> tuple[str, tuple[int, int], str]:
        cursor.execute("SELECT VERSION()")
        text = str(cursor.fetchone()[0])
        first, second = text.split(".")[:2]
        return ("MariaDB" if "mariadb" in text.lower() else "MySQL", (int(first), int(second)), text)

    def _translate(self, error: Any) -> CdcError:
        pymysql = _pymysql()
        code, text = error_code(error), code_and_message(error)
        if code in LOCK_WAIT:
            return errors.busy(self.address, text, ends_idle=True)
        if constraint := CONSTRAINTS.get(str(code)):
            return errors.value_rejected(self.address, text, constraint.do)
        if code in VALUE_REJECTED or isinstance(error, pymysql.DataError | pymysql.IntegrityError):
            do = "exclude the column in tables.columns, or correct the value at the source and resync"
            if self.floats is Floats.NUMBER:
                do += "; NaN and Infinity need `floats: text` in the target"
            return errors.value_rejected(self.address, text, do)
        return errors.failed(self.address, text, meaning(code, text))


def catalog_text(kind: str) -> str:
    """Without the width in which integers are shown, which older servers have, and with the digits of a DATETIME."""
    text = INTEGER.sub(r"\1", kind.lower())
    return "datetime(0)" if text == "datetime" else text


def own_settings(purpose: str) -> dict[str, str]:
    return {
        **SETTINGS,
        "sql_mode": "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
        "innodb_lock_wait_timeout": str(LOCK_LIMIT_S),
        "lock_wait_timeout": str(SWAP_LIMIT_S),
        **({"wait_timeout": str(IDLE_LIMIT_S)} if purpose in COMMITTING else {}),
    }


def _pymysql() -> Any:
    return load_library("pymysql", "target", "mysql")
