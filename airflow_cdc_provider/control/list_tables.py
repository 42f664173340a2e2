"""The tables of the source that the definition selects, by the names of their copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from airflow_cdc_provider.connectors.source_features import ConfirmsDrops, FindsRenamedTables, HasIdentities
from airflow_cdc_provider.control.described_tables import described_tables, other_kinds
from airflow_cdc_provider.control.inventory import begun_tables
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.decisions.listed_tables import (
    GoneTable,
    NewTable,
    gone_problem,
    gone_tables,
    on_new_table,
    separate_new_tables,
    settled_drops,
    was_copied,
)
from airflow_cdc_provider.core.decisions.renamed_tables import may_be_renamed, under_copied_names
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.no_such_tables import NO_SUCH_TABLE
from airflow_cdc_provider.core.spec.other_kinds import NOT_COPIED, OtherKind
from airflow_cdc_provider.core.spec.selection import Selection, is_pattern, left_out, select
from airflow_cdc_provider.core.spec.table_policy import OnDroppedTable, OnNewTable
from airflow_cdc_provider.core.table.copies import source_table
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.state_rows import TableRow


@dataclass(frozen=True)
class ListedTables:
    """``problems``: of tables and patterns that cannot be copied. ``new``: not copied. ``gone``: not listed any more.
    ``renamed``: name of the copy → name in the source."""

    selections: tuple[Selection, ...]
    problems: tuple[Problem, ...]
    new: tuple[NewTable, ...]
    gone: tuple[GoneTable, ...]
    renamed: Mapping[str, str]


def list_tables(replicator: Replicator, rows: Mapping[str, TableRow]) -> ListedTables:
    """``rows``: of the index. Raises SourceUnavailable."""
    definition, source = replicator.definition, replicator.source
    described, renamed = _renamed_tables(replicator, described_tables(replicator, rows), rows)
    others = other_kinds(source)
    selections, problems = select(definition, described, replicator.targets.table_name, replicator.hash_key, others)
    known = _known_tables(replicator, selections, rows)
    new: tuple[NewTable, ...] = ()
    if rows or known:  # not in the first run
        asked = [
            one.source_table
            for one in selections
            if one.source_table not in known and on_new_table(definition, one.rule) is OnNewTable.ASK
        ]
        decisions = replicator.log.decisions() if asked else []
        identities = source.identities(asked) if asked and isinstance(source, HasIdentities) else {}
        selections, new = separate_new_tables(definition, selections, known, decisions, identities)
    gone, problems = _gone_tables(replicator, described, rows, problems, others)
    named = [problem for problem in problems if problem.code == NOT_COPIED]
    new += _left_out(replicator, [*left_out(definition, described, others), *named], rows)
    return ListedTables(selections, problems, new, gone, renamed)


def _known_tables(replicator: Replicator, selections: Sequence[Selection], rows: Mapping[str, TableRow]) -> set[str]:
    """The tables of earlier runs: those of the index and, if a table would be a new one, those of staging, which a lost
    index had."""
    definition, indexed = replicator.definition, {source_table(copy) for copy in rows}
    known = {source_table(copy) for copy, row in rows.items() if was_copied(row)}
    waits = any(
        one.source_table not in indexed
        and is_pattern(one.rule.source)
        and on_new_table(definition, one.rule) is not OnNewTable.COPY
        for one in selections
    )
    return known | (begun_tables(replicator) - indexed) if waits else known


def _left_out(replicator: Replicator, found: Sequence[Problem], rows: Mapping[str, TableRow]) -> tuple[NewTable, ...]:
    """What rules match beside tables, under names that no copy has."""
    copied = {source_table(copy) for copy, row in rows.items() if was_copied(row)}
    return tuple(
        NewTable(one.where, replicator.targets.table_name(one.where), one.what, remedy=one.do)
        for one in found
        if one.where not in copied
    )


def _renamed_tables(
    replicator: Replicator, described: list[TableSchema], rows: Mapping[str, TableRow]
) -> tuple[list[TableSchema], dict[str, str]]:
    """The tables by the names of their copies, and the name now of each one that has another."""
    candidates = may_be_renamed(replicator.definition, {schema.table for schema in described}, rows)
    if not candidates or not isinstance(replicator.source, FindsRenamedTables):
        return described, {}
    return under_copied_names(described, replicator.source.present_names(candidates), rows)


def _gone_tables(
    replicator: Replicator,
    described: Sequence[TableSchema],
    rows: Mapping[str, TableRow],
    problems: Sequence[Problem],
    others: Mapping[str, OtherKind],
) -> tuple[tuple[GoneTable, ...], tuple[Problem, ...]]:
    """The tables that the source no longer lists without being blocked by that, and the problems of all tables."""
    source, gone = replicator.source, gone_tables(replicator.definition, {one.table for one in described}, rows)
    absent = {problem.where for problem in problems if problem.code == NO_SUCH_TABLE}
    unknown = absent - {source_table(table) for table in rows}
    decisions = replicator.log.decisions() if unknown else []
    names = {source_table(one.table) for one in gone} | settled_drops(replicator.definition, rows, decisions)
    rest = [problem for problem in problems if problem.code != NO_SUCH_TABLE or problem.where not in names]
    found = {}
    for one in gone:
        dropped, control = None, rows[one.table].control
        if one.policy is OnDroppedTable.DROP and isinstance(source, ConfirmsDrops):
            dropped = source.is_dropped(source_table(one.table), control.identity if control else None)
        found[one] = gone_problem(one, dropped, others.get(source_table(one.table)))
    blocked = [problem for problem in found.values() if problem]
    return tuple(one for one, problem in found.items() if problem is None), (*rest, *blocked)
