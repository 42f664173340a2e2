"""What the change log contains after a schema change that waits for an answer."""

from __future__ import annotations

import json
from dataclasses import dataclass

from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.log.change_log import TableSlice
from airflow_cdc_provider.core.table.copies import source_table
from airflow_cdc_provider.core.table.questions import Question

ROWS = 3
MAX_TEXT = 60


@dataclass(frozen=True)
class Sample:
    """``records``: how many changes of the table wait. ``values``: of the changed columns, in some of these changes.
    The change log contains no column that the definition excludes."""

    records: int
    values: tuple[dict[str, str], ...] = ()


def sample_of(replicator: Replicator, question: Question) -> Sample:
    parts = [
        part
        for manifest in replicator.log.manifests(question.window + 1)
        if (part := manifest.tables.get(source_table(question.table))) and part.rows
    ]
    columns = (*_in_the_copy(replicator, question), *(name for pair in question.renames for name in pair))
    values = _values(replicator, parts[0], columns) if parts and columns else ()
    return Sample(sum(part.rows for part in parts), values)


def _in_the_copy(replicator: Replicator, question: Question) -> tuple[str, ...]:
    """The columns of the question as the change log has them: by their names in the copy."""
    if not question.schema_id:
        return question.columns
    schema = replicator.log.schema(question.schema_id)
    return tuple(column.name for column in schema.columns if column.source_name in question.columns)


def _values(replicator: Replicator, part: TableSlice, columns: tuple[str, ...]) -> tuple[dict[str, str], ...]:
    import pyarrow.parquet as pq

    found: list[dict[str, str]] = []
    with replicator.log.store.open_input(part.files[0].path) as content:
        for batch in pq.ParquetFile(content).iter_batches(1000, columns=["op", "after"]):
            for row in batch.to_pylist():
                image = json.loads(row["after"]) if row["after"] and row["op"] != "schema" else {}
                if some := {name: _shortened(image[name]) for name in columns if name in image}:
                    found.append(some)
                if len(found) == ROWS:
                    return tuple(found)
    return tuple(found)


def _shortened(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"
