"""Matching of a definition against the tables and columns of the source. Pure.

A table belongs to the rule that names it, or else to the first pattern of the YAML that matches it. A table whose rule
is invalid is omitted; the other tables are copied. ``Problem.where`` is the table, or the pattern as in the YAML.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from airflow_cdc_provider.core.columns.copied import CopiedColumns, changes_columns
from airflow_cdc_provider.core.columns.functions import hash_key_id
from airflow_cdc_provider.core.decisions.steps import LoggedTable, TableTask
from airflow_cdc_provider.core.errors import Problem, of_table
from airflow_cdc_provider.core.nearest import abbreviated, did_you_mean
from airflow_cdc_provider.core.spec.column_problems import conversion_problems, named_columns
from airflow_cdc_provider.core.spec.copies import copies_of
from airflow_cdc_provider.core.spec.definition import (
    Definition,
    OnDelete,
    TableRule,
    log_fingerprint,
    rule_fingerprint,
)
from airflow_cdc_provider.core.spec.extent_problems import extent_problems, needed_columns
from airflow_cdc_provider.core.spec.history_problems import history_problems
from airflow_cdc_provider.core.spec.no_such_tables import no_match, no_such_table
from airflow_cdc_provider.core.spec.other_kinds import OF_PATTERN, OtherKind, not_copied
from airflow_cdc_provider.core.spec.routing import target_name
from airflow_cdc_provider.core.spec.selected_columns import selected_schema, selects, withhold
from airflow_cdc_provider.core.spec.shards import shard_problems, with_shard_value
from airflow_cdc_provider.core.spec.target_tables import collisions
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.copies import source_table
from airflow_cdc_provider.core.table.equal_names import equal_without_case
from airflow_cdc_provider.core.table.history import stored_schema
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.source_names import without_quotes
from airflow_cdc_provider.core.table.states import TableState

MAX_TABLES = 500
RESERVED_PREFIX = "_cdc_"

NO_OTHERS: Mapping[str, OtherKind] = {}


@dataclass(frozen=True)
class Selection:
    """A copy and its rule. ``selected``: the selected columns of the source, with the effective key.
    ``hash_key``: the key of hashes."""

    table: str
    target: str
    selected: TableSchema
    rule: TableRule
    definition_sha256: str
    log_sha256: str = ""
    hash_key: bytes = field(default=b"", repr=False)

    @property
    def source_table(self) -> str:
        return source_table(self.table)

    @property
    def schema(self) -> TableSchema:
        """The schema of the rows of the copy."""
        return copied_schema(self.rule, self.selected, self.hash_key)

    def task(
        self,
        state: TableState,
        control: ControlRecord | None = None,
        ignored: Sequence[str] = (),
        renamed_to: str = "",
        disclosed: Mapping[str, str] | None = None,
    ) -> TableTask:
        """``ignored``: columns of the source that are not copied by an operator's decision. ``renamed_to``: the name in
        the source, if it is another one. ``disclosed``: the columns of a sensitive table that may be copied; None:
        all."""
        rule, withheld = withhold(self.rule, self.selected, disclosed)
        own = _without(rule, ignored)
        return TableTask(
            self.table,
            self.target,
            self._stored(own),
            own,
            self.definition_sha256,
            state,
            control,
            withheld=withheld,
            ignored=tuple(ignored),
            renamed_to=renamed_to,
            logged=LoggedTable(self._stored(rule), rule) if ignored else None,
            log_sha256=self.log_sha256,
        )

    def _stored(self, rule: TableRule) -> TableSchema:
        """The schema of the target table with the columns that ``rule`` selects."""
        columns = tuple(column for column in self.selected.columns if selects(rule, column.text_of or column.name))
        return stored_schema(rule.history, copied_schema(rule, replace(self.selected, columns=columns), self.hash_key))


def _without(rule: TableRule, ignored: Sequence[str]) -> TableRule:
    if not ignored:
        return rule
    columns = rule.columns
    if columns.include:
        columns = replace(columns, include=tuple(name for name in columns.include if name not in ignored))
    else:
        columns = replace(columns, exclude=(*columns.exclude, *ignored))
    return replace(rule, columns=columns)


def copied_schema(rule: TableRule, selected: TableSchema, hash_key: bytes) -> TableSchema:
    return CopiedColumns(rule, selected, hash_key).copied_schema if changes_columns(rule) else selected


def select(
    definition: Definition,
    described: Sequence[TableSchema],
    table_name: Callable[[str], str],
    hash_key: bytes = b"",
    others: Mapping[str, OtherKind] = NO_OTHERS,
) -> tuple[tuple[Selection, ...], tuple[Problem, ...]]:
    """All tables that can be copied, sorted by name, and all problems.

    ``described``: the tables of the source. ``table_name`` derives the target name of a copy if the YAML has none. If
    there are more than ``MAX_TABLES`` tables, nothing is selected. ``hash_key``: the key of hashes. ``others``: what
    the source has beside tables.
    """
    by_name = {schema.table: schema for schema in described}
    rules, problems = _assign(definition.tables, by_name, others)
    if len(rules) > MAX_TABLES:
        return (), (*problems, _too_many(definition, len(rules)))

    selections = []
    for table, rule in sorted(rules.items()):
        rule = replace(rule, snapshot=rule.snapshot.over(definition.snapshot))
        selected = selected_schema(rule, by_name[table])
        rule, unnamed = with_shard_value(rule, table)
        shard = shard_problems(rule, selected, rule.dropped_tables or definition.dropped_tables)
        table_problems = [*_table_problems(rule, by_name[table], hash_key), *unnamed, *shard]
        shared = table_problems
        for copy, own in copies_of(rule, table, definition.target_names):
            target, routing_problems = target_name(own, table, table_name(copy))
            problems += of_table(copy, [*routing_problems, *shared, *history_problems(own, selected)])
            shared = []
            if not (table_problems or routing_problems or history_problems(own, selected)):
                key_id = hash_key_id(hash_key)
                fingerprints = rule_fingerprint(definition, own, key_id), log_fingerprint(definition, own, key_id)
                selections.append(Selection(copy, target, selected, own, *fingerprints, hash_key))
    colliding_problems = collisions(selections)
    problems += colliding_problems
    colliding = {problem.where for problem in colliding_problems}
    return tuple(s for s in selections if s.table not in colliding), tuple(problems)


def is_pattern(source: str) -> bool:
    return "*" in source or "?" in source


def rule_of(rules: Sequence[TableRule], table: str) -> TableRule | None:
    """A name has precedence over patterns, and the first pattern over others."""
    named = (rule for rule in rules if rule.source == table)
    patterns = (rule for rule in rules if is_pattern(rule.source) and matches(rule.source, table))
    return next(named, None) or next(patterns, None)


def matches(pattern: str, table: str) -> bool:
    """``*`` matches any characters, ``?`` exactly one. Case-sensitive."""
    return _regex(pattern).fullmatch(table) is not None


@cache
def _regex(pattern: str) -> re.Pattern[str]:
    parts = (".*" if c == "*" else "." if c == "?" else re.escape(c) for c in pattern)
    return re.compile("".join(parts), re.DOTALL)


def left_out(
    definition: Definition, described: Iterable[TableSchema], others: Mapping[str, OtherKind]
) -> tuple[Problem, ...]:
    """What the patterns match beside tables, without the parts of tables that a rule selects."""
    selected = {schema.table for schema in described if rule_of(definition.tables, schema.table)}
    rules = {name: rule_of(definition.tables, name) for name in sorted(others)}
    return tuple(
        not_copied(name, others[name], OF_PATTERN)
        for name, rule in rules.items()
        if rule and is_pattern(rule.source) and others[name].within not in selected
    )


def _assign(
    rules: Sequence[TableRule], by_name: dict[str, TableSchema], others: Mapping[str, OtherKind]
) -> tuple[dict[str, TableRule], list[Problem]]:
    assigned: dict[str, TableRule] = {}
    problems: list[Problem] = []
    patterns = [rule for rule in rules if is_pattern(rule.source)]
    for rule in rules:
        if is_pattern(rule.source):
            continue
        if rule.source in by_name:
            assigned[rule.source] = rule
        elif rule.source in others:
            problems.append(not_copied(rule.source, others[rule.source]))
        else:
            problems += of_table(rule.source, [no_such_table(rule.source, by_name)])
    for rule in patterns:
        matching = [table for table in by_name if matches(rule.source, table)]
        for table in matching:
            assigned.setdefault(table, rule)
        problems += _pattern_problems(rule, [by_name[table] for table in matching], by_name)
    return assigned, problems


def _pattern_problems(rule: TableRule, schemas: list[TableSchema], tables: Iterable[str]) -> list[Problem]:
    """Problems of the pattern itself. ``tables``: all of the source. A column that it excludes must exist in at least
    one table: a misspelled exclusion would copy a column that must not be copied."""
    if not schemas:
        plain = without_quotes(rule.source)
        return [no_match(rule.source, [name for name in tables if matches(plain, without_quotes(name))])]
    known = {name for schema in schemas for name in schema.names}
    named = named_columns(rule.columns)
    return [_unknown_column(rule.source, field, name, known) for field, name in named if name not in known]


def _table_problems(rule: TableRule, schema: TableSchema, hash_key: bytes) -> list[Problem]:
    """All problems that prevent a copy of this table by its rule."""
    named = [
        *(("columns.include", name) for name in rule.columns.include),
        *(() if is_pattern(rule.source) else named_columns(rule.columns)),
        *(("key", name) for name in rule.key),
        *needed_columns(rule),
    ]
    unknown = [_unknown_column(schema.table, f, n, schema.names) for f, n in named if n not in schema.names]
    selected = selected_schema(rule, schema)
    conversions = [*conversion_problems(rule, selected)]
    names = [] if conversions else _bad_names(schema, selected, copied_schema(rule, selected, hash_key))
    rows = [*_keyless(rule, selected), *extent_problems(rule, selected)]
    return unknown + conversions + _omitted(rule, selected, schema) + names + rows


def _unknown_column(where: str, field: str, column: str, known: Iterable[str]) -> Problem:
    return Problem(
        "DEF042",
        f"`{field}` names column {column!r}, which {where} does not have",
        where=where,
        found=column,
        allowed=abbreviated(known),
        do=did_you_mean(column, known),
    )


def _omitted(rule: TableRule, selected: TableSchema, schema: TableSchema) -> list[Problem]:
    """Columns that the copy requires and the rule omits."""
    needed = [*(("key", name) for name in selected.key), *needed_columns(rule)]
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


def _bad_names(schema: TableSchema, selected: TableSchema, copied: TableSchema) -> list[Problem]:
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
    for names in equal_without_case(copied.names):
        problems.append(
            Problem(
                "DEF025",
                f"columns of {selected.table} differ only by case",
                where=selected.table,
                found=", ".join(names),
                allowed="names that differ when case is ignored",
                do="omit all but one with `columns.exclude`, or use other names with `columns.rename`",
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


def _too_many(definition: Definition, count: int) -> Problem:
    return Problem(
        "DEF024",
        f"the patterns of {definition.name} match too many tables",
        where=definition.name,
        found=f"{count} tables",
        allowed=f"at most {MAX_TABLES}",
        do="narrow the patterns, or split the replicator",
    )


def all_but_one(names: Sequence[str], key: Sequence[str]) -> tuple[str, ...]:
    """Of columns that the copy cannot have together, those to omit: one remains, of the key if possible."""
    remaining = next((name for name in names if name in key), names[0])
    return tuple(name for name in names if name != remaining)
