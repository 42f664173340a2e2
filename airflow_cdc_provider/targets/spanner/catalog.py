"""What the database says about its tables. Spanner serves its catalog by queries outside of transactions that write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from airflow_cdc_provider.targets.spanner.names import CONTROL, MARKER, quoted, staging_prefix
from airflow_cdc_provider.targets.spanner.session import Session
from airflow_cdc_provider.targets.spanner.values import text_of

TABLES = (
    "SELECT t.table_name, c.constraint_name, t.row_deletion_policy_expression FROM information_schema.tables AS t"
    " LEFT JOIN information_schema.table_constraints AS c ON c.table_schema = t.table_schema"
    " AND c.table_name = t.table_name AND STARTS_WITH(c.constraint_name, @marker)"
    " WHERE t.table_schema = '' AND t.table_type = 'BASE TABLE'"
    " AND (LOWER(t.table_name) = LOWER(@table) OR STARTS_WITH(t.table_name, @prefix) OR t.table_name = @control)"
)
NAMES = "SELECT table_name FROM information_schema.tables WHERE table_schema = '' AND table_type = 'BASE TABLE'"
COLUMNS = (
    "SELECT column_name FROM information_schema.columns WHERE table_schema = '' AND LOWER(table_name) = LOWER(@table)"
)
INDEXES = (
    "SELECT index_name FROM information_schema.indexes"
    " WHERE table_schema = '' AND LOWER(table_name) = LOWER(@table) AND index_type = 'INDEX'"
)
PRIVILEGES = (
    "SELECT privilege_type, grantee FROM information_schema.table_privileges"
    " WHERE table_schema = '' AND LOWER(table_name) = LOWER(@table)"
)
DIALECT = "SELECT option_value FROM information_schema.database_options WHERE option_name = 'database_dialect'"
GOOGLE_SQL = "GOOGLE_STANDARD_SQL"


@dataclass(frozen=True)
class FoundTable:
    """``identity``: of a copy; empty for a table of another origin. ``deletes``: the rows that Spanner deletes by
    itself, as an expression; empty if it keeps all."""

    name: str
    identity: str
    deletes: str = ""


@dataclass(frozen=True)
class FoundTables:
    """A target table and its staging tables. ``has_own``: whether our own tables exist."""

    target: str
    tables: tuple[FoundTable, ...]
    has_own: bool

    @property
    def named(self) -> FoundTable | None:
        """The table that has the name of the target table, in which case does not matter."""
        return next((table for table in self.tables if table.name.lower() == self.target.lower()), None)

    def copy(self, identity: str) -> FoundTable | None:
        return next((table for table in self.tables if table.identity == identity and identity), None)

    def staging(self) -> list[FoundTable]:
        return [table for table in self.tables if table is not self.named]


def find_tables(session: Session, target_table: str) -> FoundTables:
    rows = session.query(
        TABLES, marker=MARKER, table=target_table, prefix=staging_prefix(target_table), control=CONTROL
    )
    found = [tuple(str(text_of(value) or "") for value in row) for row in rows]
    tables = tuple(
        FoundTable(name, mark.removeprefix(MARKER), deletes) for name, mark, deletes in found if name != CONTROL
    )
    return FoundTables(target_table, tables, len(tables) < len(found))


def find_names(session: Session) -> list[str]:
    """Of all tables."""
    return [str(text_of(name)) for (name,) in session.query(NAMES)]


def find_columns(session: Session, table: str) -> list[str]:
    return [str(text_of(name)) for (name,) in session.query(COLUMNS, table=table)]


def has_value(session: Session, table: str, column: str) -> bool:
    ((count,),) = session.query(f"SELECT COUNT({quoted(column)}) FROM {quoted(table)}")
    return str(text_of(count)) != "0"


def count_rows(session: Session, table: str) -> int:
    ((count,),) = session.query(f"SELECT COUNT(*) FROM {quoted(table)}")
    return int(str(text_of(count)))


def find_dialect(session: Session) -> str:
    return next((str(text_of(value)) for (value,) in session.query(DIALECT)), GOOGLE_SQL)


def replace_statements(session: Session, tables: FoundTables, copy: FoundTable, replaced: str) -> list[str]:
    """Give a copy the name of the target table, in one statement, and the privileges on the table that it replaces;
    then drop that one under its new name ``replaced``."""
    old = tables.named
    if old is None:
        return [f"RENAME TABLE {quoted(copy.name)} TO {quoted(tables.target)}"]
    grants = [(str(text_of(kind)), str(text_of(role))) for kind, role in session.query(PRIVILEGES, table=old.name)]
    return [
        *(f"GRANT {kind} ON TABLE {quoted(copy.name)} TO ROLE {quoted(role)}" for kind, role in grants),
        f"RENAME TABLE {quoted(old.name)} TO {quoted(replaced)}, {quoted(copy.name)} TO {quoted(tables.target)}",
    ]


def drop_statements(session: Session, tables: Iterable[str]) -> list[str]:
    """A table can be dropped when it has neither indexes nor privileges."""
    return [statement for table in tables for statement in _drop(session, table)]


def _drop(session: Session, table: str) -> Sequence[str]:
    indexes = [str(text_of(name)) for (name,) in session.query(INDEXES, table=table)]
    grants = [(str(text_of(kind)), str(text_of(role))) for kind, role in session.query(PRIVILEGES, table=table)]
    return [
        *(f"DROP INDEX IF EXISTS {quoted(index)}" for index in indexes),
        *(f"REVOKE {kind} ON TABLE {quoted(table)} FROM ROLE {quoted(role)}" for kind, role in grants),
        f"DROP TABLE IF EXISTS {quoted(table)}",
    ]
