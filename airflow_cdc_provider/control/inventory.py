"""The tables of a replicator without asking its source: from the index, else from staging."""

from __future__ import annotations

from airflow_cdc_provider.control.fences import commit_fence
from airflow_cdc_provider.control.replicator import Replicator, utc_now
from airflow_cdc_provider.control.table_rows import current_row
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log.change_log import table_of_folder
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.selection import is_pattern, matches
from airflow_cdc_provider.core.table.state_rows import TableRow
from airflow_cdc_provider.core.table.states import TableState


def known_tables(replicator: Replicator) -> dict[str, str]:
    """Source table → target table of everything that was ever copied or is about to be, less what was dropped."""
    rows = replicator.state.tables(replicator.name)
    if rows:
        return {row.table: row.target for row in rows.values() if row.state is not TableState.DROPPED}
    return _in_staging(replicator)


def rebuild_index(replicator: Replicator, by: str) -> list[TableRow]:
    """Make the index of a replicator anew from targets and staging alone. Paused and blocked tables stay so. A table
    that another state store wrote is taken over by a fence: from then on the other one's commits are refused."""
    state, owner, at = replicator.state, replicator.state.owner(), utc_now()
    rows = []
    for table, target_table in _in_staging(replicator).items():
        held = replicator.target.state(table, target_table)
        control = held.control
        if control is None or control.replicator != replicator.name:
            continue
        if control.owner != owner:
            control = commit_fence(replicator, table, target_table, held, by, owner=owner)
        rows.append(current_row(table, target_table, control, None, at))
    failpoint("rebuild.before")
    state.change_tables(replicator.name, lambda _: rows)
    state.write_audit(replicator.name, by, "state rebuild", {"tables": [row.table for row in rows]})
    return rows


def _in_staging(replicator: Replicator) -> dict[str, str]:
    """Every table for which staging has a control record, where the definition still names it."""
    found = {}
    for folder in replicator.log.store.names("control"):
        table = table_of_folder(folder)
        rule = _rule(replicator.definition.tables, table)
        if rule is not None:
            found[table] = rule.target or replicator.target.table_name(table)
    return found


def _rule(rules: tuple[TableRule, ...], table: str) -> TableRule | None:
    plain = (rule for rule in rules if rule.source == table)
    patterns = (rule for rule in rules if is_pattern(rule.source) and matches(rule.source, table))
    return next(plain, None) or next(patterns, None)
