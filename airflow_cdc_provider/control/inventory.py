"""The tables of a replicator, from the index or from staging, without a connection to the source."""

from __future__ import annotations

from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.measured_rows import remeasured_row
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.control.table_rows import current_row
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log.change_log import table_of_folder
from airflow_cdc_provider.core.log.copy_progress import COPIES
from airflow_cdc_provider.core.spec.copies import rule_of_copy
from airflow_cdc_provider.core.spec.routing import target_name
from airflow_cdc_provider.core.spec.selection import rule_of
from airflow_cdc_provider.core.table.copies import source_table
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import WITHOUT_COPY
from airflow_cdc_provider.core.times import utc_now


def known_tables(replicator: Replicator) -> dict[str, str]:
    """Name of the copy → target table, for every copy that exists or is about to. Copies in a target that the YAML does
    not list any more are left out."""
    rows = replicator.state.tables(replicator.name)
    if rows:
        copied = (row for row in rows.values() if row.state not in WITHOUT_COPY)
        return {row.table: row.target for row in copied if replicator.targets.has(row.table)}
    return tables_in_staging(replicator)


def rebuild_index(replicator: Replicator, actor: str) -> list[TableRow]:
    """Rebuild the index of a replicator from targets and staging alone. Paused and blocked tables keep their state. A
    table of another state store is taken over by a fence: from then on the target rejects commits of that store."""
    state, owner, at = replicator.state, replicator.state.owner(), utc_now()
    allowed, manifests = replicator.definition.freshness, [*replicator.log.manifests(1)]
    rows = []
    for table, target_table in tables_in_staging(replicator).items():
        current = replicator.targets.state(table, target_table)
        control = current.control
        if control is None or control.replicator != replicator.name:
            continue
        if control.owner != owner:
            control = commit_fence(replicator, table, target_table, current, actor, owner=owner)
        row = current_row(table, target_table, control, None, at)
        rows.append(remeasured_row(row, manifests, allowed))
    failpoint("rebuild.before")
    state.change_tables(replicator.name, lambda _: rows)
    state.write_audit(replicator.name, actor, "state rebuild", {"tables": [row.table for row in rows]})
    return rows


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
        table = source_table(copy)
        rule = rule_of(replicator.definition.tables, table)
        if rule and (own := rule_of_copy(rule, table, replicator.definition.target_names, copy)):
            tables[copy], _ = target_name(own, table, replicator.targets.table_name(copy))
    return tables
