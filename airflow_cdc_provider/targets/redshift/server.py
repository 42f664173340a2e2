"""Redshift as a database server.

LOCK takes a table from its readers, too. So the lock of a table is that of an empty table beside it: it comes before
the first query of its transaction, which then reads what the holder before it has committed. All DDL is part of a
transaction.
"""

from __future__ import annotations

import os
import re
import socket
import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.error_classes import ErrorClass, Meaning
from airflow_cdc_provider.core.connections.postgres_errors import meaning
from airflow_cdc_provider.core.errors import CdcError, Problem, TargetUnavailable
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.targets.database import errors
from airflow_cdc_provider.targets.database.limits import Limits
from airflow_cdc_provider.targets.database.loading import LoadedPart
from airflow_cdc_provider.targets.database.names import CUT, LOCK, own_lock_table
from airflow_cdc_provider.targets.database.server import LOCK_LIMIT_S, SWAP_LIMIT_S
from airflow_cdc_provider.targets.database.stage import Stage
from airflow_cdc_provider.targets.redshift.catalog import COLUMNS, COMMENT, GRANTS, SYSTEM_COLUMNS, TABLES, grant
from airflow_cdc_provider.targets.redshift.files import load_statements, typed, unload_statement
from airflow_cdc_provider.targets.redshift.options import RedshiftOptions
from airflow_cdc_provider.targets.redshift.session import address, library, open_session, tls_warnings, user
from airflow_cdc_provider.targets.redshift.sql import RedshiftSql

LOADS = 2
"""A load whose answer was lost and that did not happen is tried once more."""

DROP_LIMIT_S = 2
CONFLICT = re.compile(r"10(18|23)\b|.*(conflict with concurrent|concurrently updated)")
"""Serialization errors have no state of their own: 1023 a cycle of transactions, 1018 a table that is dropped."""

CONFLICT_STATES = frozenset({"40001", "40P01", "42P07", "23505"})
"""The last two: of two CREATE … IF NOT EXISTS of one name, one may fail."""

CANCELED, NO_PRIVILEGE, DEPENDENT = "57014", "42501", "2BP01"
NO_LOGIN = frozenset({"28000", "28P01", "3D000"})
VALUE_CLASSES = ("22", "23")


@dataclass(frozen=True)
class RedshiftServer:
    info: ConnectionInfo
    options: RedshiftOptions
    stage: Stage
    replicator: str

    swaps_under_lock: ClassVar[bool] = True
    alters_in_transactions: ClassVar[bool] = True
    limits: ClassVar[Limits] = Limits(127, reserved_columns=SYSTEM_COLUMNS, columns=1600)

    @property
    def sql(self) -> RedshiftSql:
        return RedshiftSql(self.schema, self.options.json)

    @property
    def schema(self) -> str:
        return self.options.schema

    @property
    def address(self) -> str:
        return address(self.info)

    def tls_warnings(self) -> list[Problem]:
        return tls_warnings(self.info)

    @contextmanager
    def session(self, purpose: str, window: int | None = None) -> Iterator[Any]:
        driver = library()
        name = f"cdc:{self.replicator}:{purpose}@{socket.gethostname()[:20]}.{os.getpid()}"
        group = f"cdc:{self.replicator}:{purpose}{'' if window is None else f':{window}'}"
        try:
            with open_session(self.info, name, group) as connection:
                yield connection
        except (driver.Error, OSError, struct.error) as error:
            raise self._translate(error) from error

    def comment(self, cursor: Any, table: str) -> str | None:
        found = self._listed(cursor, COMMENT, table)
        return str(found[0]) if found else None

    def columns(self, cursor: Any, table: str) -> list[str]:
        return [str(name) for name in self._listed(cursor, COLUMNS, table)]

    def tables_like(self, cursor: Any, prefix: str) -> list[str]:
        return [str(name) for name in self._listed(cursor, TABLES, prefix)]

    def other_collations(self, cursor: Any, table: str) -> list[str]:
        """The database has one collation, which ``server_problems`` asks for."""
        return []

    def existing(self, cursor: Any, tables: Collection[str]) -> Collection[str]:
        found = set(self.tables_like(cursor, ""))
        return {name for name in tables if self.sql.stored(name) in found}

    def lock_table_name(self, target_table: str) -> str:
        return own_lock_table(target_table)

    def lock_table(self, cursor: Any, target_table: str) -> None:
        self._lock(cursor, self.lock_table_name(target_table))

    def lock_cut(self, cursor: Any, replicator: str) -> None:
        self._lock(cursor, CUT)

    def lock_own_tables(self, cursor: Any) -> None:
        cursor.execute(self.sql.create_table(LOCK, [f"{self.sql.quoted('n')} INTEGER"], "", staging=False)[0])
        cursor.execute("COMMIT")
        self._lock(cursor, LOCK)

    def _lock(self, cursor: Any, table: str) -> None:
        with self._limited(cursor, LOCK_LIMIT_S):
            cursor.execute(f"LOCK {self.sql.table(table)}")
        limit_statements(cursor, 0)

    @contextmanager
    def _limited(self, cursor: Any, seconds: int) -> Iterator[None]:
        """Statements that give up after this time. Only here is it our own limit that cancels one."""
        limit_statements(cursor, seconds)
        try:
            yield
        except library().Error as error:
            state, text = described(error)
            if state == CANCELED:
                raise errors.busy(self.address, text) from error
            raise

    def index_and_analyze(self, cursor: Any, table: str, index: Sequence[str], unique: bool, constraint: str) -> None:
        """Redshift has no indexes; a load into an empty table updates its statistics."""

    def swap(self, connection: Any, shadow: str, table: str, replaced: str, exists: bool) -> None:
        """All in the open transaction. Privileges on the old copy are granted on the new one."""
        cursor, full = connection.cursor(), self.sql.table(table)
        grants: list[str] = []
        with self._limited(cursor, SWAP_LIMIT_S):
            failpoint("copy.before_swap")
            if exists:
                cursor.execute(GRANTS, (self.sql.stored(self.schema), self.sql.stored(table)))
                grants = [grant(full, *row) for row in cursor.fetchall()]
                cursor.execute(f"DROP TABLE {full}")
            cursor.execute(f"ALTER TABLE {self.sql.table(shadow)} RENAME TO {self.sql.quoted(table)}")
            for statement in grants:
                cursor.execute(statement)
            failpoint("copy.in_swap")
            connection.commit()
        failpoint("copy.after_swap")
        self.stage.delete(shadow)

    def drop_if_unused(self, connection: Any, table: str) -> bool:
        """In a session of its own, because a statement that is given up ends its transaction."""
        try:
            with self.session("clean") as other:
                cursor = other.cursor()
                with self._limited(cursor, DROP_LIMIT_S):
                    cursor.execute(f"DROP TABLE IF EXISTS {self.sql.table(table)}")
                    other.commit()
        except TargetUnavailable as error:
            if error.problems[0].code != errors.BUSY:
                raise
            return False
        self.stage.delete(table)
        return True

    def create_stage(self, cursor: Any) -> None:
        """The stage is a folder of a bucket."""

    def write_file(
        self, table: str, schema: TableSchema, part: int, batches: Iterable[pyarrow.RecordBatch]
    ) -> LoadedPart:
        return self.stage.write(table, typed(schema, batches))

    def load_files(
        self, table: str, schema: TableSchema, columns: Sequence[str], parts: Sequence[LoadedPart], window: int
    ) -> None:
        """The table is empty before, and COPY loads all rows or none. So its rows show whether a load whose answer was
        lost has happened; the lock of the table waits for its end."""
        manifest = self.stage.write_manifest(table, parts)
        statements = load_statements(self.sql, table, schema, columns, manifest, self.options.iam_role)
        rows = sum(part.rows for part in parts)
        for number in range(1, LOADS + 1):
            try:
                self._load(table, statements, rows, window)
                return
            except TargetUnavailable:
                if number == LOADS:
                    raise

    def _load(self, table: str, statements: Sequence[str], rows: int, window: int) -> None:
        with self.session("load", window) as connection:
            cursor = connection.cursor()
            cursor.execute(f"LOCK {self.sql.table(table)}")
            if self._count(cursor, table) == rows:
                return
            for statement in statements:
                cursor.execute(statement)
            if (loaded := self._count(cursor, table)) != rows:
                raise errors.incomplete_load(self.address, loaded, rows)
            failpoint("load.before_commit")
            connection.commit()
            failpoint("load.after_commit")
            if len(statements) > 1:  # COPY itself updates the statistics of an empty table
                connection.autocommit = True
                cursor.execute(f"ANALYZE {self.sql.table(table)}")

    def _count(self, cursor: Any, table: str) -> int:
        cursor.execute(f"SELECT COUNT(*) FROM {self.sql.table(table)}")
        return int(cursor.fetchone()[0])

    def result_parts(self, query: str) -> list[Any]:
        result = self.stage.new_result()
        with self.session("read") as connection:
            cursor = connection.cursor()
            cursor.execute(unload_statement(query, self.stage.url(result), self.options.iam_role))
            cursor.execute("SELECT pg_last_unload_count()")
            rows = int(cursor.fetchone()[0])
        return list(self.stage.result_parts(result)) if rows else []

    def server_problems(self, cursor: Any) -> Iterable[Problem]:
        cursor.execute("SELECT db_collation()")
        (collation,) = cursor.fetchone()
        if collation != "case_sensitive":
            do = "use a database that was created with COLLATE CASE_SENSITIVE"
            yield Problem("TGT051", "the database ignores the case of texts", self.address, str(collation), do=do)
        cursor.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (self.sql.stored(self.schema),))
        if not cursor.fetchone():
            do = f"CREATE SCHEMA {self.sql.quoted(self.schema)} AUTHORIZATION {self._user()};"
            yield Problem("TGT052", "the schema does not exist", self.address, self.schema, do=do)

    def grants(self) -> str:
        """The statements of a superuser that give the user all privileges that this target requires."""
        role = "default" if self.options.iam_role == "default" else f"'{self.options.iam_role}'"
        return (
            f"GRANT USAGE, CREATE ON SCHEMA {self.sql.quoted(self.schema)} TO {self._user()};"
            f" GRANT ASSUMEROLE ON {role} TO {self._user()} FOR COPY, UNLOAD;"
        )

    def _cancelled(self) -> Meaning:
        groups = f"the query groups cdc:{self.replicator}:*"
        do = f"look for the rule in stl_wlm_rule_action, or for a timeout of WLM, and raise it for {groups}"
        return Meaning(ErrorClass.LIMIT, f"WLM or an administrator cancelled the query: {do}")

    def _user(self) -> str:
        return self.sql.quoted(user(self.info))

    def _listed(self, cursor: Any, query: str, name: str) -> list[Any]:
        cursor.execute(query, (self.sql.stored(self.schema), self.sql.stored(name)))
        return [value for (value,) in cursor.fetchall()]

    def _translate(self, error: Exception) -> CdcError:
        """The driver gives the fields of a server's error as a mapping. Its detail may quote values."""
        state, text = described(error)
        if not text:
            first, *_ = str(error).splitlines() or [""]
            return errors.unreachable(self.address, f"{type(error).__name__}: {first}"[:300])
        message = text.removeprefix(f"{state}: ")
        if state in CONFLICT_STATES or CONFLICT.match(message):
            return errors.conflict(self.address, text)
        if state in NO_LOGIN:
            return errors.login_rejected(self.address, text, self.info.connection_id)
        if state == NO_PRIVILEGE:
            return errors.missing_privilege(self.address, text, self.grants())
        if state == DEPENDENT:
            return errors.dependent_objects(self.address, text)
        if state == CANCELED:
            return errors.failed(self.address, text, self._cancelled())
        if state.startswith(VALUE_CLASSES):
            do = "exclude the column in tables.columns, or correct the value at the source and resync"
            return errors.value_rejected(self.address, text, do)
        return errors.failed(self.address, text, meaning(state), self.grants())


def described(error: Exception) -> tuple[str, str]:
    """The state of a server's error, and both state and message; empty if it is not the server's."""
    fields = error.args[0] if error.args and isinstance(error.args[0], dict) else {}
    state, message = str(fields.get("C", "")), str(fields.get("M", "")).strip().split("\n")[0]
    return state, f"{state}: {message}" if fields else ""


def limit_statements(cursor: Any, seconds: int) -> None:
    """0: no limit. The time in which a statement waits for a lock counts."""
    cursor.execute(f"SET statement_timeout TO {seconds * 1000}")
