"""Matching of a definition against the tables and columns of the source. Pure.

A table belongs to the rule that names it, or else to the first pattern of the YAML that matches it. A table whose rule
is invalid is omitted; the other tables are copied. ``Problem.where`` is the table, or the pattern as in the YAML.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem, of_table
from airflow_cdc_provider.core.nearest import did_you_mean
from airflow_cdc_provider.core.spec.definition import (
    Definition,
    OnDelete,
    OnUnrepresentable,
    TableRule,
    rule_fingerprint,
)
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import LIMITED, TEXT_OF, Column, Kind, LogicalType, Regime, TableSchema
from airflow_cdc_provider.core.table.states import TableState

MAX_TABLES = 500
RESERVED_PREFIX = "_cdc_"


@dataclass(frozen=True)
class Selection:
    """A source table and its rule. ``schema`` contains the selected columns and the effective key."""

    table: str
    target: str
    schema: TableSchema
    rule: TableRule
    definition_sha256: str

    def task(self, state: TableState, control: ControlRecord | None = None, ignored: Sequence[str] = ()) -> TableTask:
        """``ignored``: columns that are not copied by an operator's decision."""
        rule, schema = self.rule, self.schema
        if ignored:
            rule = _without(rule, ignored)
            schema = replace(schema, columns=tuple(column for column in schema.columns if column.name not in ignored))
        sha256 = self.definition_sha256
        return TableTask(self.table, self.target, schema, rule, sha256, state, control, ignored=tuple(ignored))


def _without(rule: TableRule, ignored: Sequence[str]) -> TableRule:
    columns = rule.columns
    if columns.include:
        columns = replace(columns, include=tuple(name for name in columns.include if name not in ignored))
    else:
        columns = replace(columns, exclude=(*columns.exclude, *ignored))
    return replace(rule, columns=columns)


def select(
    definition: Definition, described: Sequence[TableSchema], table_name: Callable[[str], str]
) -> tuple[tuple[Selection, ...], tuple[Problem, ...]]:
    """All tables that can be copied, sorted by name, and all problems.

    ``described``: the tables of the source. ``table_name`` derives the target name if the YAML has none. If there are
    more than ``MAX_TABLES`` tables, nothing is selected.
    """
    by_name = {schema.table: schema for schema in described}
    rules, problems = _assign(definition.tables, by_name)
    if len(rules) > MAX_TABLES:
        return (), (*problems, _too_many(definition, len(rules)))

    selections = []
    for table, rule in sorted(rules.items()):
        table_problems = list(of_table(table, _table_problems(rule, by_name[table])))
        problems += table_problems
        if not table_problems:
            selections.append(
                Selection(
                    table,
                    rule.target or table_name(table),
                    selected_schema(rule, by_name[table]),
                    rule,
                    rule_fingerprint(definition, rule),
                )
            )
    collisions = _collisions(selections)
    problems += collisions
    colliding = {problem.where for problem in collisions}
    return tuple(s for s in selections if s.table not in colliding), tuple(problems)


def is_pattern(source: str) -> bool:
    return "*" in source or "?" in source


def matches(pattern: str, table: str) -> bool:
    """``*`` matches any characters, ``?`` exactly one. Case-sensitive."""
    return _regex(pattern).fullmatch(table) is not None


@cache
def _regex(pattern: str) -> re.Pattern[str]:
    parts = (".*" if c == "*" else "." if c == "?" else re.escape(c) for c in pattern)
    return re.compile("".join(parts), re.DOTALL)


def selected_schema(rule: TableRule, schema: TableSchema) -> TableSchema:
    """The columns that the rule selects, in the source's order, with the effective key."""
    columns = selected_columns(rule, schema.columns, rule.key or schema.key)
    if not rule.key or set(rule.key) == set(schema.key):
        return replace(schema, columns=columns, key=rule.key or schema.key)
    regime = Regime.DOUBLE if schema.regime is Regime.SINGLE else schema.regime
    return replace(schema, columns=columns, key=rule.key, regime=regime)


def selected_columns(rule: TableRule, columns: Iterable[Column], key: Sequence[str]) -> tuple[Column, ...]:
    """The columns that the rule selects, with its casts and with the text columns of ``on_unrepresentable``."""
    selected = list[Column]()
    for column in columns:
        if not selects(rule, column.name):
            continue
        if column.name in rule.columns.cast:
            selected.append(replace(column, type=LogicalType(Kind.TEXT), initial=None))
            continue
        selected.append(column)
        set_null = rule.on_unrepresentable is OnUnrepresentable.SET_NULL and column.name not in key
        if set_null and column.type.kind in LIMITED:
            text_id = f"{column.id}.text" if column.id else ""
            selected.append(Column(f"{TEXT_OF}{column.name}", LogicalType(Kind.TEXT), id=text_id))
    return tuple(selected)


def selects(rule: TableRule, column: str) -> bool:
    if rule.columns.include:
        return column in rule.columns.include
    return column not in rule.columns.exclude


def _assign(rules: Sequence[TableRule], by_name: dict[str, TableSchema]) -> tuple[dict[str, TableRule], list[Problem]]:
    assigned: dict[str, TableRule] = {}
    problems: list[Problem] = []
    patterns = [rule for rule in rules if is_pattern(rule.source)]
    for rule in rules:
        if is_pattern(rule.source):
            continue
        if rule.source in by_name:
            assigned[rule.source] = rule
        else:
            problems += of_table(rule.source, [_no_such_table(rule.source, by_name)])
    for rule in patterns:
        matching = [table for table in by_name if matches(rule.source, table)]
        for table in matching:
            assigned.setdefault(table, rule)
        problems += _pattern_problems(rule, [by_name[table] for table in matching])
    return assigned, problems


def _no_such_table(table: str, known: Iterable[str]) -> Problem:
    return Problem(
        "DEF041",
        f"the source has no table {table}",
        where=table,
        found="no such table, or no permission to see it",
        do=did_you_mean(table, known) or "create it, grant access to it, or remove it from `tables`",
    )


def _pattern_problems(rule: TableRule, schemas: list[TableSchema]) -> list[Problem]:
    """Problems of the pattern itself. A column that it excludes must exist in at least one table: a misspelled
    exclusion would copy a column that must not be copied."""
    if not schemas:
        return [
            Problem(
                "DEF023",
                f"pattern {rule.source} matches no table",
                where=rule.source,
                found="no match among the tables that the connection can see",
                do="correct the pattern or grant access to the tables",
            )
        ]
    known = {name for schema in schemas for name in schema.names}
    return [
        _unknown_column(rule.source, field, name, known)
        for field, names in (("columns.exclude", rule.columns.exclude), ("columns.cast", rule.columns.cast))
        for name in names
        if name not in known
    ]


def _table_problems(rule: TableRule, schema: TableSchema) -> list[Problem]:
    """All problems that prevent a copy of this table by its rule."""
    exclusions = () if is_pattern(rule.source) else rule.columns.exclude
    named = [
        *(("columns.include", name) for name in rule.columns.include),
        *(("columns.exclude", name) for name in exclusions),
        *(("columns.cast", name) for name in (() if is_pattern(rule.source) else rule.columns.cast)),
        *(("key", name) for name in rule.key),
        *(("where", condition.column) for condition in rule.where),
        *(("cluster_by", name) for name in rule.cluster_by),
    ]
    unknown = [_unknown_column(schema.table, f, n, schema.names) for f, n in named if n not in schema.names]
    selected = selected_schema(rule, schema)
    return unknown + _omitted(rule, selected, schema) + _bad_names(schema, selected) + _keyless(rule, selected)


def _unknown_column(where: str, field: str, column: str, known: Iterable[str]) -> Problem:
    return Problem(
        "DEF042",
        f"`{field}` names column {column!r}, which {where} does not have",
        where=where,
        found=column,
        allowed=_abbreviated(known),
        do=did_you_mean(column, known),
    )


def _omitted(rule: TableRule, selected: TableSchema, schema: TableSchema) -> list[Problem]:
    """Columns that the copy requires and the rule omits."""
    needed = [
        *(("key", name) for name in selected.key),
        *(("where", condition.column) for condition in rule.where),
        *(("cluster_by", name) for name in rule.cluster_by),
    ]
    return [
        Problem(
            "DEF021",
            f"`{field}` column {name!r} of {schema.table} is omitted by `columns`",
            where=schema.table,
            found=name,
            allowed="columns that are copied",
            do="include the column, or use another key"
            if field == "key"
            else f"include the column, or change `{field}`",
        )
        for field, name in needed
        if name in schema.names and name not in selected.names
    ]


def _bad_names(schema: TableSchema, selected: TableSchema) -> list[Problem]:
    problems = [
        Problem(
            "DEF026",
            f"column {name!r} of {selected.table} has a reserved name",
            where=selected.table,
            found=name,
            allowed=f"names that do not start with {RESERVED_PREFIX}",
            do=f"omit it: `columns: {{exclude: [{name}]}}`",
            columns=(name,),
        )
        for name in selected.names
        if name in schema.names and name.lower().startswith(RESERVED_PREFIX)
    ]
    for names in _equal_ignoring_case(selected.names):
        problems.append(
            Problem(
                "DEF025",
                f"columns of {selected.table} differ only by case",
                where=selected.table,
                found=", ".join(names),
                allowed="names that differ when case is ignored",
                do="omit all but one with `columns.exclude`",
                columns=all_but_one(names, selected.key),
            )
        )
    if not selected.columns:
        problems.append(Problem("DEF043", f"no column of {selected.table} is copied", where=selected.table))
    return problems


def _keyless(rule: TableRule, selected: TableSchema) -> list[Problem]:
    if selected.key or rule.on_delete is not OnDelete.SOFT:
        return []
    return [
        Problem(
            "DEF044",
            f"{selected.table} has no key, so single rows cannot be marked as deleted",
            where=selected.table,
            found="on_delete: soft",
            allowed="on_delete: hard, on_delete: ignore",
            do="set `key`, or another `on_delete`",
        )
    ]


def _collisions(selections: Sequence[Selection]) -> list[Problem]:
    """Target names that two tables would share, ignoring case as most targets do."""
    by_target: defaultdict[str, list[Selection]] = defaultdict(list)
    for selection in selections:
        by_target[selection.target.lower()].append(selection)
    return [
        Problem(
            "DEF015",
            f"target table {selection.target} would be written from more than one source table",
            where=selection.table,
            found=_abbreviated(other.table for other in shared),
            allowed="one source table per target table",
            do="set `target` names, or narrow the pattern",
            table=selection.table,
        )
        for shared in by_target.values()
        if len(shared) > 1
        for selection in shared
    ]


def _too_many(definition: Definition, count: int) -> Problem:
    return Problem(
        "DEF024",
        f"the patterns of {definition.name} match too many tables",
        where=definition.name,
        found=f"{count} tables",
        allowed=f"at most {MAX_TABLES}",
        do="narrow the patterns, or split the replicator",
    )


def _equal_ignoring_case(names: Sequence[str]) -> list[list[str]]:
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        groups[name.lower()].append(name)
    return [group for group in groups.values() if len(group) > 1]


def all_but_one(names: Sequence[str], key: Sequence[str]) -> tuple[str, ...]:
    """Of columns that the copy cannot have together, those to omit: one remains, of the key if possible."""
    remaining = next((name for name in names if name in key), names[0])
    return tuple(name for name in names if name != remaining)


def _abbreviated(names: Iterable[str], limit: int = 20) -> str:
    """A list for a message, cut after ``limit`` entries."""
    ordered = list(dict.fromkeys(names))
    return ", ".join(ordered[:limit]) + (f" and {len(ordered) - limit} more" if len(ordered) > limit else "")
