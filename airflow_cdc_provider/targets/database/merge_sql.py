"""A merge as plain SQL statements, to be run in order in one transaction.

Deletes come first, then updates, then inserts. No statement changes a key, so no statement can conflict with a row
that a later one would have moved.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from airflow_cdc_provider.core.table.merge_plan import (
    DELETED,
    GONE,
    KNOWN,
    LIVE,
    OP,
    ORDER,
    PUT,
    Action,
    Clause,
    MergePlan,
    RowMatch,
)
from airflow_cdc_provider.core.table.merge_plan import STAGED_ALIAS as S
from airflow_cdc_provider.core.table.merge_plan import TARGET_ALIAS as T
from airflow_cdc_provider.core.table.own_rows import OwnRows
from airflow_cdc_provider.core.table.schema import Column
from airflow_cdc_provider.targets.database.sql import Sql


class Effect(StrEnum):
    """How the row count of a statement is used. ALTER, FILL: not at all. REFUSE: any row rejects the whole merge.
    FORGET: the row leaves the table, and a later statement inserts it again."""

    ALTER = "alter"
    FILL = "fill"
    FORGET = "forget"
    REFUSE = "refuse"
    DELETED = "deleted"
    UPDATED = "updated"
    INSERTED = "inserted"


Counts = Mapping[Effect, int]
"""Number of rows by effect."""


def row_count_after(rows: int | None, counts: Counts) -> int | None:
    """The number of rows of a table that had ``rows``; None if that is unknown."""
    if rows is None:
        return None
    return rows + counts.get(Effect.INSERTED, 0) - counts.get(Effect.DELETED, 0) - counts.get(Effect.FORGET, 0)


@dataclass(frozen=True)
class Statement:
    effect: Effect
    text: str


RANK = {
    Action.REFUSE: 0,
    Action.DELETE: 1,
    Action.MARK_DELETED: 2,
    Action.UPDATE: 3,
    Action.INSERT: 4,
    Action.INSERT_DELETED: 5,
}


def merge_statements(sql: Sql, target: str, staged: str, plan: MergePlan, bounds: str = "") -> list[Statement]:
    """``target`` and ``staged`` are full table names. ``bounds``: a condition on rows of the target, which all those
    with the key of a staged row fulfil."""
    renderer = _Renderer(sql, target, staged, plan, bounds)
    clauses = [clause for clause in plan.clauses() if clause.action is not Action.FILL]
    ordered = sorted(clauses, key=lambda clause: RANK[clause.action])
    return [*renderer.fill(), *renderer.forget(), *(renderer.statement(clause) for clause in ordered)]


def own_condition(sql: Sql, own: OwnRows, alias: str = "") -> str:
    """Of a row of the copy, in a table that others share."""
    name = sql.quoted(own.column.name)
    return f"{f'{alias}.' if alias else ''}{name} = {sql.literal(own.value, own.column)}"


@dataclass(frozen=True)
class _Renderer:
    sql: Sql
    target: str
    staged: str
    plan: MergePlan
    bounds: str

    def fill(self) -> Iterator[Statement]:
        """Set the initial value of added columns in existing rows, before any other statement reads them."""
        initial = {column.name: self._initial(column) for column in self.plan.added if column.initial is not None}
        if initial:
            sets = ", ".join(f"{self.sql.quoted(name)} = {value}" for name, value in initial.items())
            where = own_condition(self.sql, self.plan.own) if self.plan.own else "TRUE"
            yield Statement(Effect.FILL, f"UPDATE {self.target} SET {sets} WHERE {where}")

    def forget(self) -> Iterator[Statement]:
        """A soft-deleted row that a partial change puts back is a new row: it keeps nothing of the old one."""
        if not (self.plan.soft and self.plan.partial and self.plan.schema.key):
            return
        put = Clause(RowMatch.BOTH, Action.DELETE, (PUT,), partial_only=True, flagged_only=True, guarded=True)
        yield Statement(Effect.FORGET, self._delete(put))

    def statement(self, clause: Clause) -> Statement:
        match clause.action:
            case Action.REFUSE:
                return Statement(Effect.REFUSE, self._rejected_count(clause))
            case Action.DELETE:
                return Statement(Effect.DELETED, self._delete(clause))
            case Action.MARK_DELETED:
                return Statement(Effect.UPDATED, self._flag(clause))
            case Action.UPDATE:
                condition = self._join_condition(clause)
                return Statement(Effect.UPDATED, self.sql.update(self.target, self.staged, condition, self._updates()))
            case Action.INSERT:
                return Statement(Effect.INSERTED, self._insert(clause, self._technical_columns()))
            case Action.INSERT_DELETED:
                return Statement(Effect.INSERTED, self._insert(clause, self._technical_columns() | {DELETED: "TRUE"}))
            case Action.FILL:
                raise ValueError("rows are filled before the clauses")

    def _delete(self, clause: Clause) -> str:
        row = self.sql.deleted_row(self.target)
        if clause.rows is RowMatch.BOTH:
            return self.sql.delete(self.target, self.staged, self._join_condition(clause, row))
        every_row = not self.plan.schema.key
        return self.sql.delete_where(self.target, "TRUE" if every_row else self._own_without_staged_row(row))

    def _flag(self, clause: Clause) -> str:
        deleted = self.sql.quoted(DELETED)
        if clause.rows is RowMatch.BOTH:
            kept = {c.name: self._new_value(c) for c in self._non_key_columns()} if self.plan.partial else {}
            values = {**kept, DELETED: "TRUE", ORDER: f"{S}.{self.sql.quoted(ORDER)}"}
            return self.sql.update(self.target, self.staged, self._join_condition(clause), values)
        rest = self._own_without_staged_row(T)
        return f"UPDATE {self.target} AS {T} SET {deleted} = TRUE WHERE NOT {T}.{deleted} AND {rest}"

    def _insert(self, clause: Clause, technical: dict[str, str]) -> str:
        values = {name: f"{S}.{self.sql.quoted(name)}" for name in self.plan.schema.names} | technical
        names = ", ".join(map(self.sql.quoted, values))
        whole = f" AND {S}.{self.sql.quoted(KNOWN)} IS NULL" if clause.whole_only else ""
        alone = f" AND {self._no_target_row()}" if self.plan.schema.key else ""
        return (
            f"INSERT INTO {self.target} ({names}) SELECT {', '.join(values.values())} FROM {self.staged} AS {S}"
            f" WHERE {self._ops(clause)}{whole}{alone}"
        )

    def _rejected_count(self, clause: Clause) -> str:
        """Counts the staged rows that require a row which the target lacks or has as deleted."""
        if clause.rows is RowMatch.STAGED_ONLY:
            where = f"{self._ops(clause)} AND {S}.{self.sql.quoted(KNOWN)} IS NOT NULL AND {self._no_target_row()}"
            return f"SELECT count(*) FROM {self.staged} AS {S} WHERE {where}"
        return f"SELECT count(*) FROM {self.target} AS {T} JOIN {self.staged} AS {S} ON {self._join_condition(clause)}"

    def _join_condition(self, clause: Clause, row: str = T) -> str:
        """``row``: the name of the row of the target."""
        quoted = self.sql.quoted
        if not self.plan.schema.key:
            return f"{S}.{quoted(OP)} = '{GONE}' AND {self.sql.same_row(self.plan.schema.columns, row)}"
        conditions = [self._ops(clause), self._same_key(row)]
        if clause.partial_only:
            conditions.append(f"{S}.{quoted(KNOWN)} IS NOT NULL")
        if clause.flagged_only:
            conditions.append(f"{row}.{quoted(DELETED)}")
        if clause.guarded:
            order = f"{row}.{quoted(ORDER)}"
            newer = f">= coalesce({order}, '')" if self.plan.not_older else f"> {order}"
            conditions.append(f"{S}.{quoted(ORDER)} {newer}")
        return " AND ".join(conditions)

    def _ops(self, clause: Clause) -> str:
        listed = ", ".join(f"'{op}'" for op in clause.ops or (LIVE,))
        return f"{S}.{self.sql.quoted(OP)} IN ({listed})"

    def _same_key(self, row: str) -> str:
        key_columns = [(self.plan.schema.column(name), self.sql.quoted(name)) for name in self.plan.schema.key]
        equal = (self.sql.equal(column, f"{row}.{name}", f"{S}.{name}") for column, name in key_columns)
        return " AND ".join((*equal, *([self.bounds] if self.bounds else [])))

    def _no_target_row(self) -> str:
        return f"NOT EXISTS (SELECT 1 FROM {self.target} AS {T} WHERE {self._same_key(T)})"

    def _own_without_staged_row(self, row: str) -> str:
        own = f"{own_condition(self.sql, self.plan.own, row)} AND " if self.plan.own else ""
        if self.plan.truncated_at:
            own += f"coalesce({row}.{self.sql.quoted(ORDER)}, '') <= '{self.plan.truncated_at}' AND "
        return f"{own}NOT EXISTS (SELECT 1 FROM {self.staged} AS {S} WHERE {self._same_key(row)})"

    def _updates(self) -> dict[str, str]:
        return {column.name: self._new_value(column) for column in self._non_key_columns()} | self._technical_columns()

    def _non_key_columns(self) -> list[Column]:
        return [column for column in self.plan.schema.columns if column.name not in self.plan.schema.key]

    def _new_value(self, column: Column) -> str:
        name = self.sql.quoted(column.name)
        if not self.plan.partial:
            return f"{S}.{name}"
        known, index = f"{S}.{self.sql.quoted(KNOWN)}", self.plan.schema.names.index(column.name) + 1
        return f"CASE WHEN {known} IS NULL OR substr({known}, {index}, 1) = '1' THEN {S}.{name} ELSE {T}.{name} END"

    def _technical_columns(self) -> dict[str, str]:
        if not self.plan.schema.key:
            return {}
        return {ORDER: f"{S}.{self.sql.quoted(ORDER)}", **({DELETED: "FALSE"} if self.plan.soft else {})}

    def _initial(self, column: Column) -> str:
        return self.sql.literal(json.loads(column.initial or "null"), column)
