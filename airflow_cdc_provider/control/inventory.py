"""The tables of a replicator, from the index or from staging, without a connection to the source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airflow_cdc_provider.control.drop_marks import marked_copies
from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.measured_rows import remeasured_row
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.control.table_rows import current_row
from airflow_cdc_provider.core.errors import UNREADABLE, Fenced, Problem
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log.change_log import table_of_folder
from airflow_cdc_provider.core.log.copy_progress import COPIES
from airflow_cdc_provider.core.spec.copies import rule_of_copy
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.routing import target_name
from airflow_cdc_provider.core.spec.selection import rule_of
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.copies import source_table
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import DROPPING, WITHOUT_COPY, TableState


def known_tables(replicator: Replicator) -> dict[str, str]:
    """Name of the copy → target table, for every copy that exists or is about to. Copies in a target that the YAML does
    not list any more are left out."""
    rows = replicator.state.tables(replicator.name)
    if rows:
        copied = (row for row in rows.values() if row.state not in WITHOUT_COPY)
        return {row.table: row.target for row in copied if replicator.targets.has(row.table)}
    return tables_in_staging(replicator)


@dataclass(frozen=True)
class RebuiltIndex:
    """``unread``: why copies have no row."""

    rows: Sequence[TableRow]
    unread: Sequence[Problem]


def rebuild_index(replicator: Replicator, actor: str) -> RebuiltIndex:
    """Rebuild the index of a replicator from targets and staging alone. Paused and blocked tables keep their state. A
    table of another state store is taken over by a fence: from then on the target rejects commits of that store. A copy
    that is dropped in part has a row, so that a run finishes its drop."""
    state, at, tables = replicator.state, replicator.state.now(), tables_in_staging(replicator)
    allowed, manifests = replicator.definition.freshness, [*replicator.log.manifests(1)]
    rows, unread, marked = list[TableRow](), list[Problem](), marked_copies(replicator, tables)
    for table, target_table in tables.items():
        control = None
        try:
            control = _own_control(replicator, table, target_table, actor)
        except (Fenced, *UNREADABLE) as error:
            unread += () if table in marked else error.problems
        if control is not None:
            row = current_row(table, target_table, control, None, at)
            rows.append(remeasured_row(row, manifests, allowed))
        elif table in marked:
            rows.append(TableRow(table, target_table, TableState.PAUSED, at, DROPPING))
    failpoint("rebuild.before")
    state.change_tables(replicator.name, lambda _: rows)
    state.write_audit(replicator.name, actor, "state rebuild", {"tables": [row.table for row in rows]})
    return RebuiltIndex(rows, unread)


def _own_control(replicator: Replicator, table: str, target_table: str, actor: str) -> ControlRecord | None:
    """Of a copy of this replicator, which belongs to this state store from now on."""
    current, owner = replicator.targets.state(table, target_table), replicator.state.owner()
    control = current.control
    if control is None or control.replicator != replicator.name:
        return None
    if control.owner == owner:
        return control
    return commit_fence(replicator, table, target_table, current, actor, owner=owner)


def begun_tables(replicator: Replicator) -> set[str]:
    """Every table of the source that the last window captured, or of which a copy has begun."""
    log = replicator.log
    sealed = log.sealed()
    captured = log.manifest(sealed).tables if sealed else ()
    copying = filter(None, map(table_of_folder, log.store.names(COPIES)))
    return {*captured, *map(source_table, (*log.tables(), *copying))}


def tables_in_staging(replicator: Replicator) -> dict[str, str]:
    """Every table that has a control record in staging and is still part of the definition."""
    tables = {}
    for copy in replicator.log.tables():
        if own := _rule_of_copy(replicator, copy):
            tables[copy], _ = target_name(own, source_table(copy), replicator.targets.table_name(copy))
    return tables


def is_selected(replicator: Replicator, copy: str) -> bool:
    """Whether the YAML selects the copy, if the source has its table."""
    return _rule_of_copy(replicator, copy) is not None


def _rule_of_copy(replicator: Replicator, copy: str) -> TableRule | None:
    table = source_table(copy)
    rule = rule_of(replicator.definition.tables, table)
    return rule_of_copy(rule, table, replicator.definition.target_names, copy) if rule else None
