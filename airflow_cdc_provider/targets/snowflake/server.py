"""Snowflake as a database server.

DDL statements commit the open transaction, and a lock ends with its transaction. So a new copy gets the table's name by
one statement after its control row is committed; that commit also raises the fence of the old copy, so that no other
attempt commits in between. A table's lock is its control table: an UPDATE locks all of it.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, ClassVar

import pyarrow

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CdcError, Problem
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.targets.database import control, cuts, errors
from airflow_cdc_provider.targets.database.limits import Limits
from airflow_cdc_provider.targets.database.loading import LoadedPart
from airflow_cdc_provider.targets.database.names import CUT, identity_in
from airflow_cdc_provider.targets.database.server import LOCK_LIMIT_S
from airflow_cdc_provider.targets.database.stage import Stage
from airflow_cdc_provider.targets.snowflake import stage
from airflow_cdc_provider.targets.snowflake.error_codes import meaning
from airflow_cdc_provider.targets.snowflake.grants import grant_statements
from airflow_cdc_provider.targets.snowflake.options import SnowflakeOptions
from airflow_cdc_provider.targets.snowflake.session import address, library, open_session, tls_warnings
from airflow_cdc_provider.targets.snowflake.sql import SnowflakeSql, exactly
from airflow_cdc_provider.targets.snowflake.transactions import current_transaction, end_idle_transactions, shown

LOGIN_REJECTED = frozenset({250001, 390100, 390144, 390101, 394400})
LOCK_WAIT = frozenset({625})
DATA_ERRORS = range(100_000, 101_000)
NO_SUCH_OBJECT = frozenset({2003, 2043, 606})
"""Also what the role may not use; the last one: a warehouse."""

NO_PRIVILEGE = "42501"


class SnowflakeServer:
    limits: ClassVar[Limits] = Limits(255, True)
    swaps_under_lock: ClassVar[bool] = False
    alters_in_transactions: ClassVar[bool] = False

    def __init__(
        self, info: ConnectionInfo, options: SnowflakeOptions, replicator: str, bucket: ConnectionInfo
    ) -> None:
        """``bucket``: the connection of an external stage."""
        self.info = info
        self.options = options
        self.replicator = replicator
        self.bucket = Stage(options.stage, bucket) if options.stage else None

    @cached_property
    def sql(self) -> SnowflakeSql:
        options = self.options
        return SnowflakeSql(options.database, options.schema, options.identifiers, options.json)

    @property
    def schema(self) -> str:
        return f"{self.options.database}.{self.options.schema}"

    @property
    def address(self) -> str:
        return address(self.info)

    def tls_warnings(self) -> list[Problem]:
        return tls_warnings(self.info)

    @contextmanager
    def session(self, purpose: str, window: int | None = None) -> Iterator[Any]:
        connector, opened = library(), None
        try:
            tag = f"cdc:{self.replicator}:{purpose}{'' if window is None else f':{window}'}"
            with open_session(self.info, self.options, tag) as opened:
                yield opened
        except connector.errors.Error as error:
            raise self._translate(error, self._grants_needed(opened)) from error

    def comment(self, cursor: Any, table: str) -> str | None:
        found = self._listed(cursor, "TABLES", "COMMENT", "TABLE_NAME = %s", table)
        return str(found[0] or "") if found else None

    def columns(self, cursor: Any, table: str) -> list[str]:
        return [str(name) for name in self._listed(cursor, "COLUMNS", "COLUMN_NAME", "TABLE_NAME = %s", table)]

    def tables_like(self, cursor: Any, prefix: str) -> list[str]:
        return [
            str(name) for name in self._listed(cursor, "TABLES", "TABLE_NAME", "STARTSWITH(TABLE_NAME, %s)", prefix)
        ]

    def other_collations(self, cursor: Any, table: str) -> list[str]:
        columns = "COLUMN_NAME || ' ' || COLLATION_NAME"
        condition = "COLLATION_NAME NOT IN ('', 'utf8', 'bin') AND TABLE_NAME = %s"
        return [str(found) for found in self._listed(cursor, "COLUMNS", columns, condition, table)]

    def existing(self, cursor: Any, tables: Collection[str]) -> Collection[str]:
        """By a command that needs no warehouse. It shows 10,000 tables at most."""
        found = {row["name"] for row in shown(cursor, f"SHOW TERSE TABLES IN SCHEMA {self.sql.scope}")}
        return {name for name in tables if self.sql.name(name) in found}

    def lock_table(self, cursor: Any, target_table: str) -> None:
        self._lock(cursor, self.sql.control_table(target_table), control.lock_row(self.sql))

    def lock_cut(self, cursor: Any, replicator: str) -> None:
        self._lock(cursor, CUT, {**dict.fromkeys(cuts.COLUMNS, ""), "cursor_window": 0, "cut_window": 0})

    def transaction(self, cursor: Any) -> str:
        return current_transaction(cursor)

    def lock_own_tables(self, cursor: Any) -> None:
        """No lock is needed: CREATE … IF NOT EXISTS is atomic."""

    def index_and_analyze(self, cursor: Any, table: str, index: Sequence[str], unique: bool, constraint: str) -> None:
        """Snowflake has no indexes and keeps its statistics by itself."""

    def swap(self, connection: Any, shadow: str, table: str, replaced: str, exists: bool) -> None:
        """Privileges on the old copy are granted on the new one first."""
        failpoint("copy.before_swap")
        connection.commit()
        failpoint("copy.in_swap")
        cursor, new, old = connection.cursor(), self.sql.table(shadow), self.sql.table(table)
        self._require_control_row(cursor, shadow, table)
        if not exists:
            cursor.execute(f"ALTER TABLE {new} RENAME TO {old}")
            failpoint("copy.after_swap")
            return
        for grant in self._grants(cursor, table):
            cursor.execute(grant.format(table=new))
        cursor.execute(f"ALTER TABLE {new} SWAP WITH {old}")
        failpoint("copy.after_swap")
        self.drop_if_unused(connection, shadow)

    def _require_control_row(self, cursor: Any, shadow: str, table: str) -> None:
        """Raises TransactionConflict if the commit before had lost its transaction."""
        control_table, where = self.sql.table(self.sql.control_table(table)), f"{self.sql.quoted('identity')} = %s"
        identity = identity_in(self.comment(cursor, shadow) or "")
        cursor.execute(f"SELECT COUNT(*) FROM {control_table} WHERE {where}", (identity,))
        if not cursor.fetchone()[0]:
            raise errors.conflict(self.address, "the transaction was aborted")

    def drop_if_unused(self, connection: Any, table: str) -> bool:
        cursor = connection.cursor()
        cursor.execute(f"DROP TABLE IF EXISTS {self.sql.table(table)}")
        if self.bucket:
            self.bucket.delete(table)
        else:
            cursor.execute(f"REMOVE {stage.internal_folder(self.sql, table)}")
        return True

    def create_stage(self, cursor: Any) -> None:
        if not self.bucket:
            cursor.execute(stage.create_stage(self.sql))

    def write_file(
        self, table: str, schema: TableSchema, part: int, batches: Iterable[pyarrow.RecordBatch]
    ) -> LoadedPart:
        if self.bucket:
            return self.bucket.write(table, stage.numbered_texts(schema, batches))
        with self.session("load") as connection:
            return stage.upload(connection.cursor(), self.sql, table, schema, batches)

    def load_files(
        self, table: str, schema: TableSchema, columns: Sequence[str], parts: Sequence[LoadedPart], window: int
    ) -> None:
        """The client repeats a statement whose answer is lost; a file that is loaded already is skipped."""
        folder = stage.internal_folder(self.sql, table)
        if self.bucket:
            folder = stage.external_folder(self.sql, self.options.stage_name, table)
        files = [part.file.rpartition("/")[2] for part in parts]
        with self.session("load", window) as connection:
            cursor = connection.cursor()
            for statement in stage.copy_statements(self.sql, table, schema, columns, folder, files):
                cursor.execute(statement)
            failpoint("load.before_commit")
            connection.commit()
            failpoint("load.after_commit")

    def result_parts(self, query: str) -> list[Any]:
        """``ResultBatch`` of the connector."""
        with self.session("read") as connection:
            cursor = connection.cursor()
            cursor.execute(query)
            return list(cursor.get_result_batches() or ())

    def server_problems(self, cursor: Any) -> Iterable[Problem]:
        where = self.address
        if not self._listed_schema(cursor):
            do = f"CREATE SCHEMA IF NOT EXISTS {self.sql.scope}; {self._grants_needed(cursor.connection)}"
            yield Problem("TGT052", "the schema does not exist, or the role may not use it", where, self.schema, do=do)

    def _listed_schema(self, cursor: Any) -> bool:
        view = f"{exactly(self.options.database)}.INFORMATION_SCHEMA.SCHEMATA"
        cursor.execute(f"SELECT count(*) FROM {view} WHERE SCHEMA_NAME = %s", (self.options.schema,))
        return bool(cursor.fetchone()[0])

    def _listed(self, cursor: Any, view: str, column: str, condition: str, name: str) -> list[Any]:
        schema = f"{exactly(self.options.database)}.INFORMATION_SCHEMA"
        query = f"SELECT {column} FROM {schema}.{view} WHERE TABLE_SCHEMA = %s AND {condition}"
        cursor.execute(query, (self.options.schema, self.sql.name(name)))
        return [value for (value,) in cursor.fetchall()]

    def _lock(self, cursor: Any, table: str, row: Mapping[str, object]) -> None:
        """``row``: a row that only serves as a lock. Several equal ones are one lock."""
        full = self.sql.table(table)
        self._wait_for(cursor, table)
        if cursor.rowcount:
            return
        names, values = ", ".join(map(self.sql.quoted, row)), ", ".join("%s" for _ in row)
        cursor.execute(f"INSERT INTO {full} ({names}) VALUES ({values})", tuple(row.values()))
        cursor.connection.commit()
        self._wait_for(cursor, table)

    def _wait_for(self, cursor: Any, table: str) -> None:
        """Take the lock of a table, also from a session that becomes idle meanwhile."""
        number = self.sql.quoted("cursor_window")
        deadline = time.monotonic() + LOCK_LIMIT_S
        while True:
            end_idle_transactions(cursor, self.sql, table)
            try:
                cursor.execute(f"UPDATE {self.sql.table(table)} SET {number} = {number}")
                return
            except library().errors.Error as error:
                if error.errno not in LOCK_WAIT or time.monotonic() > deadline:
                    raise

    def _grants(self, cursor: Any, table: str) -> list[str]:
        """The grants on a table as statements for the table ``{table}``. The owner's right is not granted again."""
        return [
            f"GRANT {grant['privilege']} ON TABLE {{table}} TO {grant['granted_to'].replace('_', ' ')}"
            f" {exactly(grant['grantee_name'])}{' WITH GRANT OPTION' if grant['grant_option'] == 'true' else ''}"
            for grant in shown(cursor, f"SHOW GRANTS ON TABLE {self.sql.table(table)}")
            if grant["privilege"] != "OWNERSHIP"
        ]

    def _grants_needed(self, connection: Any) -> str:
        """``connection``: None if there is no session; a session has the default role of its user."""
        role, warehouse = (
            str(getattr(connection, name, None) or self.info.extra.get(name) or "") for name in ("role", "warehouse")
        )
        return grant_statements(self.options, role, warehouse)

    def _translate(self, error: Any, grants: str) -> CdcError:
        """``grants``: the statements that grant what the target needs."""
        code, state = error.errno, error.sqlstate or ""
        first, *_ = str(error.raw_msg or error.msg or "").splitlines() or [""]
        text = f"{code}: {first}"
        if code in LOGIN_REJECTED or state.startswith("28"):
            return errors.login_rejected(self.address, text, self.info.connection_id)
        if isinstance(error, library().errors.OperationalError):
            return errors.unreachable(self.address, text)
        if code in NO_SUCH_OBJECT:
            return errors.missing_object(self.address, text, grants)
        if state == NO_PRIVILEGE:
            return errors.missing_privilege(self.address, text, grants)
        if code in LOCK_WAIT:
            return errors.busy(self.address, text)
        if code in DATA_ERRORS:
            do = "exclude the column in tables.columns, or correct the value at the source and resync"
            return errors.value_rejected(self.address, text, do)
        return errors.failed(self.address, text, meaning(code or 0), grants)
