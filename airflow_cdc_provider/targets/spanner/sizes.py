"""What fits one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.core.table.merge_plan import GONE, OP, MergePlan
from airflow_cdc_provider.targets.exact_values import Numbers
from airflow_cdc_provider.targets.spanner.rows import Stored

COMMIT_BYTES = 50 << 20
"""Of the rows of one transaction. Spanner allows 100 MB, its indexes included, and its texts of bytes are longer."""

PART_BYTES = 4 << 20
"""Of the rows of a part, and of a transaction that loads a copy: commits of a few megabytes are the fastest."""

CONTROL_MUTATIONS = 20
"""Of the control row, and of the row of a part."""


def mutations_of(rows: pa.Table, stored: Stored, plan: MergePlan) -> Numbers:
    """The most mutations that each staged row needs. Each written column counts, the deletion of a row counts once."""
    if plan.soft:
        return np.full(len(rows), stored.width, np.int64)
    return np.where(pc.equal(rows[OP], GONE).to_numpy(), 1, stored.width)


def bytes_of(rows: pa.Table) -> Numbers:
    """About the size of each row."""
    sizes = np.zeros(len(rows), np.int64)
    for column in rows.columns:
        kind = column.type
        if pa.types.is_string(kind) or pa.types.is_binary(kind):
            sizes += pc.fill_null(pc.binary_length(column), 0).to_numpy()
        else:
            sizes += 16
    return sizes


def split(mutations: Numbers, sizes: Numbers, most_mutations: int, most_bytes: int) -> Iterator[tuple[int, int]]:
    """The rows as slices ``(start, end)`` within both limits. A row that exceeds them is a slice of its own."""
    start, used_mutations, used_bytes = 0, 0, 0
    for number, (count, size) in enumerate(zip(mutations.tolist(), sizes.tolist(), strict=True)):
        if number > start and (used_mutations + count > most_mutations or used_bytes + size > most_bytes):
            yield start, number
            start, used_mutations, used_bytes = number, 0, 0
        used_mutations += count
        used_bytes += size
    if start < len(mutations):
        yield start, len(mutations)


def collect(batches: Iterable[pa.RecordBatch], schema: pa.Schema, most_bytes: int) -> pa.Table | None:
    """All rows as one table; None if they are more than so many bytes."""
    found, size = list[pa.RecordBatch](), 0
    for batch in batches:
        found.append(batch)
        size += batch.nbytes
        if size > most_bytes:
            return None
    return pa.Table.from_batches(found, found[0].schema if found else schema)
