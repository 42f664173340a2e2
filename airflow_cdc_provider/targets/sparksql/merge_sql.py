"""A merge in Spark SQL; every column list is explicit."""

from __future__ import annotations

from airflow_cdc_provider.core.table.merge_plan import (
    DELETED,
    GONE,
    KNOWN,
    NO_ROW,
    OP,
    ORDER,
    Action,
    Clause,
    MergePlan,
    RowMatch,
)
from airflow_cdc_provider.core.table.merge_plan import STAGED_ALIAS as S
from airflow_cdc_provider.core.table.merge_plan import TARGET_ALIAS as T
from airflow_cdc_provider.core.table.own_rows import OwnRows, bounded_column
from airflow_cdc_provider.core.table.schema import Column
from airflow_cdc_provider.targets.sparksql.names import quoted, text_literal
from airflow_cdc_provider.targets.sparksql.types import FLOATING, column_type, initial_value


def merge_sql(table: str, staged: str, plan: MergePlan) -> str:
    """``table``: the SQL name of the target. ``staged``: the view of staged rows."""
    head = [f"MERGE INTO {table} {T}", f"USING {quoted(staged)} {S}", f"ON {_condition(plan)}"]
    return "\n".join([*head, *(_clause(plan, clause) for clause in plan.clauses())])


def own_condition(own: OwnRows, alias: str = "") -> str:
    """Of a row of the copy, in a table that others share."""
    name = quoted(own.column.name)
    return f"{f'{alias}.' if alias else ''}{name} = {text_literal(own.value)}"


def current_value(column: Column, plan: MergePlan) -> str:
    """The value in the target row; in a column that was just added, rows do not have the initial value yet."""
    added = {new.name: new for new in plan.added}
    return initial_value(added[column.name]) if column.name in added else f"{T}.{quoted(column.name)}"


def equals(column: Column, left: str, right: str) -> str:
    """Null-safe equality. Floats are compared by text: 0.0 and -0.0 are equal numbers but not equal copies."""
    if column.type.kind in FLOATING:
        return f"CAST({left} AS STRING) <=> CAST({right} AS STRING)"
    return f"{left} <=> {right}"


def _condition(plan: MergePlan) -> str:
    if not plan.schema.key:
        equal = [equals(c, current_value(c, plan), f"{S}.{quoted(c.name)}") for c in plan.schema.columns]
        return " AND ".join([f"{S}.{OP} = '{GONE}'", *equal])
    key = [plan.schema.column(name) for name in plan.schema.key]
    equal = [
        f"{T}.{quoted(column.name)} {'<=>' if column.nullable else '='} {S}.{quoted(column.name)}" for column in key
    ]
    own = [own_condition(plan.own, T)] if plan.own else []
    return " AND ".join([*own, *_bounds(plan), *equal])


def _bounds(plan: MergePlan) -> list[str]:
    """Literal ranges of the target's key let Delta skip files. Useless if all rows are read anyway."""
    bounded = bounded_column(plan.schema)
    if not plan.ranges or bounded.nullable or plan.changes_unmatched_rows:
        return []
    name = f"{T}.{quoted(bounded.name)}"
    return ["(" + " OR ".join(f"{name} BETWEEN {low} AND {high}" for low, high in plan.ranges) + ")"]


def _clause(plan: MergePlan, clause: Clause) -> str:
    conditions = []
    if clause.ops:
        conditions.append(f"{S}.{OP} IN ({', '.join(map(text_literal, clause.ops))})")
    if clause.partial_only:
        conditions.append(f"{S}.{KNOWN} IS NOT NULL")
    if clause.whole_only:
        conditions.append(f"{S}.{KNOWN} IS NULL")
    if clause.flagged_only:
        conditions.append(f"{T}.{DELETED}")
    if clause.guarded:
        newer = f">= coalesce({T}.{ORDER}, '')" if plan.not_older else f"> {T}.{ORDER}"
        conditions.append(f"{S}.{ORDER} {newer}")
    if clause.rows is RowMatch.TARGET_ONLY and clause.action is Action.MARK_DELETED:
        conditions.append(f"NOT {T}.{DELETED}")
    if clause.rows is RowMatch.TARGET_ONLY and clause.action is not Action.FILL and plan.truncated_at:
        conditions.append(f"coalesce({T}.{ORDER}, '') <= {text_literal(plan.truncated_at)}")
    if clause.rows is RowMatch.TARGET_ONLY and plan.own:
        conditions.append(own_condition(plan.own, T))
    when = " AND ".join([clause.rows.value.upper(), *conditions])
    return f"WHEN {when} THEN {_action(plan, clause)}"


def _action(plan: MergePlan, clause: Clause) -> str:
    match clause.action:
        case Action.DELETE:
            return "DELETE"
        case Action.UPDATE:
            return _set(_updates(plan))
        case Action.MARK_DELETED:
            order = {ORDER: f"{S}.{ORDER}"} if clause.rows is RowMatch.BOTH else {}
            return _set({**_flag_values(plan, clause), DELETED: "true", **order})
        case Action.FILL:
            return _set(_initials(plan))
        case Action.INSERT:
            return _insert(_inserts(plan))
        case Action.INSERT_DELETED:
            return _insert({**_inserts(plan), DELETED: "true"})
        case Action.REFUSE:
            column = plan.schema.column(plan.schema.key[0])
            refusal = {column.name: f"CAST(raise_error({text_literal(NO_ROW)}) AS {column_type(column.type)})"}
            return _insert(refusal) if clause.rows is RowMatch.STAGED_ONLY else _set(refusal)


def _updates(plan: MergePlan) -> dict[str, str]:
    """A soft-deleted row that a partial change puts back is a new row: it keeps nothing of the old one."""
    unknown = f" WHEN {T}.{DELETED} THEN NULL" if plan.soft else ""
    columns = [column for column in plan.schema.columns if column.name not in plan.schema.key]
    return {**{column.name: _new_value(plan, column, unknown) for column in columns}, **_technical_columns(plan)}


def _new_value(plan: MergePlan, column: Column, unknown: str = "") -> str:
    value = f"{S}.{quoted(column.name)}"
    if not plan.partial:
        return value
    known = f"{S}.{KNOWN} IS NULL OR array_contains({S}.{KNOWN}, {text_literal(column.name)})"
    return f"CASE WHEN {known} THEN {value}{unknown} ELSE {current_value(column, plan)} END"


def _flag_values(plan: MergePlan, clause: Clause) -> dict[str, str]:
    """A soft-deleted row keeps its last values: those in the batch, else those in the target."""
    if clause.rows is not RowMatch.BOTH or not plan.partial:
        return _initials(plan)
    return {c.name: _new_value(plan, c) for c in plan.schema.columns if c.name not in plan.schema.key}


def _inserts(plan: MergePlan) -> dict[str, str]:
    return {**{name: f"{S}.{quoted(name)}" for name in plan.schema.names}, **_technical_columns(plan)}


def _technical_columns(plan: MergePlan) -> dict[str, str]:
    if not plan.schema.key:
        return {}
    return {ORDER: f"{S}.{ORDER}", **({DELETED: "false"} if plan.soft else {})}


def _initials(plan: MergePlan) -> dict[str, str]:
    return {column.name: initial_value(column) for column in plan.added if column.initial is not None}


def _set(values: dict[str, str]) -> str:
    return "UPDATE SET " + ", ".join(f"{T}.{quoted(name)} = {value}" for name, value in values.items())


def _insert(values: dict[str, str]) -> str:
    return f"INSERT ({', '.join(map(quoted, values))}) VALUES ({', '.join(values.values())})"
