"""Tables that source or target refuse as they are now, and what that means for the stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from airflow_cdc_provider.connectors.copied.reading import source_task, source_tasks
from airflow_cdc_provider.connectors.source_features import FiltersLog, ReadsTablesApart, RefusesTables
from airflow_cdc_provider.control.refused_copies import RefusedCopies
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.decisions.facts import StreamFacts, TableFacts
from airflow_cdc_provider.core.decisions.holes import waits_for_repair
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.change_log import Manifest


def with_refusals(
    replicator: Replicator, tables: tuple[TableFacts, ...], by_target: RefusedCopies
) -> tuple[TableFacts, ...]:
    source, refused = replicator.source, dict[str, Problem]()
    if isinstance(source, RefusesTables):
        refused |= source.refused([*map(source_task, source_tasks([table.task for table in tables]))])
    return tuple(
        replace(
            table,
            refused=refused.get(table.task.source_table) or by_target.refused.get(table.task.table),
            problem=table.problem or by_target.unanswered.get(table.task.table),
        )
        for table in tables
    )


def with_filtered_logs(
    replicator: Replicator, tables: tuple[TableFacts, ...], last: Manifest | None
) -> tuple[TableFacts, ...]:
    """Only refused tables can be left out. A copy that waits for the repair of a hole in the last window needs no other
    one."""
    source, refused = replicator.source, [table.task for table in tables if table.refused and table.task.control]
    if not refused or last is None or not isinstance(source, FiltersLog):
        return tables
    filtered = source.filtered([*map(source_task, source_tasks(refused))])

    def left_out(table: TableFacts) -> str:
        waits = table.task.control is not None and waits_for_repair(last, table.task.control)
        return "" if waits else filtered.get(table.task.source_table, "")

    return tuple(replace(table, left_out=left_out(table)) for table in tables)


def of_readable_tables(replicator: Replicator, stream: StreamFacts, tables: Sequence[TableFacts]) -> StreamFacts:
    if not isinstance(replicator.source, ReadsTablesApart):
        return stream
    readable = {table.task.name_in_source for table in tables if table.refused is None}
    return stream.without({table.task.name_in_source for table in tables} - readable)
