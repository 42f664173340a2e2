"""Where the columns of a copy come from, and their types on both sides."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from airflow_cdc_provider.core.errors import NotFound
from airflow_cdc_provider.core.lineage.columns import column_pairs
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.copies import source_table, target_of_copy
from airflow_cdc_provider.hooks.state import open_state
from airflow_cdc_provider.ui.access import Readable
from airflow_cdc_provider.ui.registered import opened
from airflow_cdc_provider.ui.responses import json_response
from airflow_cdc_provider.ui.texts import TableName

router = APIRouter()


@router.get("/replicators/{replicator}/columns/{table:path}")
def list_columns(request: Request, replicator: Readable, table: TableName) -> Response:
    """The columns of a copy, with those of its source from which they come, and the types on both sides."""
    state = open_state()
    one, row = opened(state, replicator), state.table(replicator, table)
    control = row.control if row else None
    if row is None or control is None or control.schema is None:
        raise NotFound.of(
            "API002", f"{replicator} has no copy of {table}", do="list its tables", allowed="a copied table"
        )
    definition = one.definition
    target = definition.target_named(target_of_copy(table))
    pairs = column_pairs(control.schema, one.targets.of(table).column_types(control.schema))
    body = {
        "source": {"type": definition.source.type, "table": source_table(table)},
        "target": {"type": target.type, "table": row.target},
        "columns": to_plain(pairs),
    }
    return json_response(request, body)
