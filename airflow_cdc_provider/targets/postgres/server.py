"""Sessions with a PostgreSQL server that is a target."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote, urlencode

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.postgres_access import jdbc_parameters, tls_warnings
from airflow_cdc_provider.core.connections.postgres_errors import meaning, meaning_of_write
from airflow_cdc_provider.core.connections.postgres_session import (
    DEFAULT_PORT,
    application_name,
    is_of_client,
    open_session,
    server_address,
    state_and_message,
)
from airflow_cdc_provider.core.connections.postgres_settings import SETTINGS, settings_statement
from airflow_cdc_provider.core.errors import CdcError, Problem
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.registry import load_library
from airflow_cdc_provider.core.table.schema import Column
from airflow_cdc_provider.targets.database import errors
from airflow_cdc_provider.targets.database.limits import Limits
from airflow_cdc_provider.targets.database.named_locks import NamedLocks
from airflow_cdc_provider.targets.database.names import identity_in, key_index, new_comment
from airflow_cdc_provider.targets.database.server import (
    COMMITTING,
    IDLE_LIMIT_S,
    LOCK_LIMIT_S,
    SWAP_LIMIT_S,
    JdbcAddress,
)
from airflow_cdc_provider.targets.postgres.attachments import Attachment, attach, attached, stays_behind
from airflow_cdc_provider.targets.postgres.sql import IN_CATALOG, PostgresSql

OLDEST_VERSION = 140000
SYSTEM_COLUMNS = frozenset({"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"})
OWN_SETTINGS = {**SETTINGS, "lock_timeout": f"{LOCK_LIMIT_S}s"}

FUNCTION = re.compile(r"function [^\n]+?\([^\n)]*\)")
"""In the context of an error, which may also quote statements."""

MEMORY = """
SELECT set_config('work_mem', '64MB', false) WHERE pg_size_bytes(current_setting('work_mem')) < pg_size_bytes('64MB')
"""
"""For the joins of a merge. A hash join that exceeds this memory goes through files, and its updates no longer follow
the order of the table: with the default of 4 MB, a million of them take nearly twice as long."""

COMMENT = """
SELECT coalesce(obj_description(c.oid, 'pg_class'), '') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s
"""
COLUMNS = """
SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped
"""
TYPES = """
SELECT a.attname::text, lower(format_type(a.atttypid, a.atttypmod)) FROM pg_attribute a
WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped
"""
TABLES = """
SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND starts_with(c.relname, %s) AND c.relkind = 'r'
"""
CHANGES_OF_ROWS = """
SELECT 'trigger ' || g.tgname FROM pg_trigger g
WHERE g.tgrelid = %(table)s::regclass AND NOT g.tgisinternal AND g.tgenabled IN ('O', 'A') AND g.tgtype & 3 = 3
UNION ALL
SELECT 'rule ' || r.rulename FROM pg_rewrite r
WHERE r.ev_class = %(table)s::regclass AND r.is_instead AND r.ev_enabled IN ('O', 'A')
ORDER BY 1
"""
"""Triggers for each row (1) before (2) it is written."""

COLLATIONS = """
SELECT a.attname || ' ' || CASE t.typname WHEN 'citext' THEN 'citext' ELSE l.collname END
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_type t ON t.oid = a.atttypid JOIN pg_collation l ON l.oid = a.attcollation
WHERE n.nspname = %s AND c.relname = %s AND a.attnum > 0 AND NOT a.attisdropped
  AND (NOT l.collisdeterministic OR t.typname = 'citext')
ORDER BY a.attnum
"""


@dataclass(frozen=True)
class PostgresServer(NamedLocks):
    info: ConnectionInfo
    schema: str
    replicator: str

    limits: ClassVar[Limits] = Limits(63, reserved_columns=SYSTEM_COLUMNS, columns=1600, key_columns=32)
    swaps_under_lock: ClassVar[bool] = True
    alters_in_transactions: ClassVar[bool] = True

    @property
    def sql(self) -> PostgresSql:
        return PostgresSql(self.schema)

    @property
    def address(self) -> str:
        return server_address(self.info)

    @contextmanager
    def session(self, purpose: str, window: int | None = None) -> Iterator[Any]:
        psycopg = _psycopg()
        idle = f"{IDLE_LIMIT_S}s" if purpose in COMMITTING else "0"
        settings = {**OWN_SETTINGS, "idle_in_transaction_session_timeout": idle}
        name = application_name(self.replicator, purpose)
        try:
            with open_session(psycopg, self.info, name, self._not_connected, settings) as connection:
                if purpose == "commit":
                    connection.execute(MEMORY)
                connection.autocommit = False
                yield connection
        except psycopg.Error as error:
            raise self._translate(error) from error

    def comment(self, cursor: Any, table: str) -> str | None:
        cursor.execute(COMMENT, (self.schema, table))
        row = cursor.fetchone()
        return str(row[0]) if row else None

    def columns(self, cursor: Any, table: str) -> list[str]:
        cursor.execute(COLUMNS, (self.sql.table(table),))
        return [str(name) for (name,) in cursor.fetchall()]

    def declared_types(self, cursor: Any, table: str) -> Mapping[str, str]:
        cursor.execute(TYPES, (self.sql.table(table),))
        return {self.sql.column_id(name): kind for name, kind in cursor.fetchall()}

    def catalog_type(self, column: Column, in_key: bool) -> str:
        kind = self.sql.column_type(column, in_key)
        return IN_CATALOG.get(kind, kind)

    def tables_like(self, cursor: Any, prefix: str) -> list[str]:
        cursor.execute(TABLES, (self.schema, prefix))
        return [str(name) for (name,) in cursor.fetchall()]

    def other_collations(self, cursor: Any, table: str) -> list[str]:
        cursor.execute(COLLATIONS, (self.schema, table))
        return [str(found) for (found,) in cursor.fetchall()]

    def changes_of_rows(self, cursor: Any, table: str, columns: Collection[str]) -> list[str]:
        cursor.execute(CHANGES_OF_ROWS, {"table": self.sql.table(table)})
        return [str(found) for (found,) in cursor.fetchall()]

    def existing(self, cursor: Any, tables: Collection[str]) -> Collection[str]:
        return set(self.tables_like(cursor, "")) & set(tables)

    def _lock(self, cursor: Any, name: str) -> None:
        """A transaction-level advisory lock, released with the transaction."""
        number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (number,))

    def index_and_analyze(self, cursor: Any, table: str, index: Sequence[str], unique: bool, constraint: str) -> None:
        quoted, full = self.sql.quoted, self.sql.table(table)
        names = ", ".join(map(quoted, index))
        if unique:
            cursor.execute(f"ALTER TABLE {full} ADD CONSTRAINT {quoted(constraint)} PRIMARY KEY ({names})")
        elif index:
            cursor.execute(f"CREATE INDEX {quoted(constraint)} ON {full} ({names})")
        cursor.execute(f"ANALYZE {full}")

    def swap(self, connection: Any, shadow: str, table: str, replaced: str, exists: bool) -> None:
        """All in the open transaction, under a lock that keeps others from changing what the old copy has."""
        cursor, full = connection.cursor(), self.sql.table(table)
        text, before = self.comment(cursor, shadow) or "", list[Attachment]()
        cursor.execute(f"SET LOCAL lock_timeout TO '{SWAP_LIMIT_S}s'")
        failpoint("copy.before_swap")
        if exists:
            cursor.execute(f"LOCK TABLE {full} IN ACCESS EXCLUSIVE MODE")
            self.require_replaceable(cursor, table)
            text = new_comment(self.comment(cursor, table) or "", text)
            before = attached(cursor, full, self._own_index(cursor, table))
            cursor.execute(f"DROP TABLE {full}")
        cursor.execute(f"ALTER TABLE {self.sql.table(shadow)} RENAME TO {self.sql.quoted(table)}")
        cursor.execute(f"ALTER TABLE {full} DISABLE ROW LEVEL SECURITY")
        if exists:
            cursor.execute(self.sql.comment_table(table, text))
            attach(cursor, full, self._own_index(cursor, table), before, self.address)
        failpoint("copy.in_swap")
        connection.commit()
        failpoint("copy.after_swap")

    def require_replaceable(self, cursor: Any, table: str) -> None:
        if found := stays_behind(cursor, self.sql.table(table), self._own_index(cursor, table)):
            raise errors.dependent_objects(self.address, ", ".join(found))

    def _own_index(self, cursor: Any, table: str) -> str:
        return key_index(table, identity_in(self.comment(cursor, table) or ""))

    def drop_if_unused(self, connection: Any, table: str) -> bool:
        psycopg = _psycopg()
        try:
            with connection.transaction():
                connection.execute("SET LOCAL lock_timeout TO '1s'")
                connection.execute(f"DROP TABLE IF EXISTS {self.sql.table(table)}")
        except psycopg.errors.LockNotAvailable:
            return False
        return True

    def insert_if_absent(self, table: str, columns: Sequence[str]) -> str:
        names, values = ", ".join(map(self.sql.quoted, columns)), ", ".join("%s" for _ in columns)
        return f"INSERT INTO {self.sql.table(table)} ({names}) VALUES ({values}) ON CONFLICT DO NOTHING"

    def copy_in(self, connection: Any, table: str, columns: Mapping[str, bool], batches: Iterable[Any]) -> int:
        import pyarrow.compute as pc
        from pyarrow import RecordBatch, csv

        def encoded(text: Any, binary: bool) -> Any:
            return pc.binary_join_element_wise(r"\x", text, "") if binary else text

        # Texts are quoted and NULLs are not, by which the CSV format distinguishes '' from NULL.
        form = csv.WriteOptions(include_header=False, quoting_style="all_valid")
        names, rows = ", ".join(map(self.sql.quoted, columns)), 0
        with connection.cursor().copy(f"COPY {self.sql.table(table)} ({names}) FROM STDIN (FORMAT csv)") as copy:
            for batch in batches:
                text = io.BytesIO()
                values = list(map(encoded, batch.columns, columns.values()))
                csv.write_csv(RecordBatch.from_arrays(values, batch.schema.names), text, form)
                copy.write(text.getbuffer())
                rows += batch.num_rows
        return rows

    def jdbc(self) -> JdbcAddress:
        options = {
            "ApplicationName": application_name(self.replicator, "read"),
            "tcpKeepAlive": "true",
            "prepareThreshold": "-1",
        }
        options |= jdbc_parameters(self.info)
        server = f"{self.info.host}:{self.info.port or DEFAULT_PORT}"
        return JdbcAddress(
            f"jdbc:postgresql://{server}/{quote(self.info.schema, safe='')}?{urlencode(options)}",
            "org.postgresql.Driver",
            self.info.login,
            self.info.password,
            settings_statement(OWN_SETTINGS),
        )

    def server_problems(self, cursor: Any) -> Iterable[Problem]:
        cursor.execute("SELECT current_setting('server_version_num')::int, current_setting('server_encoding')")
        version, encoding = cursor.fetchone()
        if version < OLDEST_VERSION:
            yield Problem("TGT050", "the server is too old", self.address, f"version {version // 10000}", "14 or later")
        if encoding != "UTF8":
            yield Problem("TGT051", "the database cannot store every character", self.address, encoding, "UTF8")
        cursor.execute("SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = %s)", (self.schema,))
        if not cursor.fetchone()[0]:
            do = f"CREATE SCHEMA {self.sql.quoted(self.schema)} AUTHORIZATION {self.sql.quoted(self.info.login)};"
            yield Problem("TGT052", "the schema does not exist", self.address, self.schema, do=do)

    def tls_warnings(self) -> list[Problem]:
        return tls_warnings(self.info)

    def _not_connected(self, text: str) -> CdcError:
        """By text: libpq reports no error code for a rejected login."""
        refusals = ("password", "pg_hba.conf", "authentication", "permission denied", "does not exist", "not permitted")
        if any(words in text for words in refusals):
            return errors.login_rejected(self.address, text, self.info.connection_id)
        return errors.unreachable(self.address, text)

    def _translate(self, error: Any) -> CdcError:
        psycopg = _psycopg()
        text = state_and_message(psycopg, error)
        match error:
            case psycopg.errors.DependentObjectsStillExist():
                return errors.dependent_objects(self.address, error.diag.message_detail or text)
            case psycopg.errors.LockNotAvailable():
                return errors.busy(self.address, text, ends_idle=True)
            case psycopg.IntegrityError():
                return errors.value_rejected(self.address, text, meaning(error.sqlstate).do)
            case psycopg.DataError() | psycopg.errors.ProgramLimitExceeded():
                do = "exclude the column in tables.columns, or correct the value at the source and resync"
                return errors.value_rejected(self.address, text, do)
            case _:
                of_client = is_of_client(psycopg, error)
                return errors.failed(self.address, raised_in(error, text), meaning_of_write(error.sqlstate, of_client))


def raised_in(error: Any, text: str) -> str:
    """``text`` with the function that raised the error, if the server names one."""
    found = FUNCTION.search(error.diag.context or "")
    return f"{text}, raised in {found[0]}" if found else text


def _psycopg() -> Any:
    return load_library("psycopg", "target", "postgres")
