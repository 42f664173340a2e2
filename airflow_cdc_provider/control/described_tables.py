"""What a source has: its tables, as the runs of a replicator see them, and other things with a name like one."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_cdc_provider.connectors.source import SourceConnector
from airflow_cdc_provider.connectors.source_features import FindsRenamedTables, ListsOtherKinds, StreamHoldsSnapshots
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.columns.copied import source_schema
from airflow_cdc_provider.core.spec.other_kinds import OtherKind
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.state_rows import TableRow


def described_tables(replicator: Replicator, rows: Mapping[str, TableRow]) -> list[TableSchema]:
    """The tables of the source. If it learns them from messages, those that it cannot describe now are as their copies
    have them. Raises SourceUnavailable."""
    source = replicator.source
    if not isinstance(source, StreamHoldsSnapshots):
        return source.tables()
    controls = [row.control for row in rows.values() if row.control is not None]
    renamed: Mapping[str, str] = {}
    if isinstance(source, FindsRenamedTables):
        renamed = source.present_names({control.source_table: control.identity for control in controls})
    described = source.tables()
    names = {schema.table for schema in described}
    former = {table for table, name in renamed.items() if name in names}
    schemas = [source_schema(control.schema) for control in reversed(controls) if control.schema is not None]
    missing = {schema.table: schema for schema in schemas if schema.table not in names}
    return [schema for schema in (*described, *missing.values()) if schema.table not in former]


def other_kinds(source: SourceConnector) -> Mapping[str, OtherKind]:
    return source.other_kinds() if isinstance(source, ListsOtherKinds) else {}
