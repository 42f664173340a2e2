"""The rows before and after changes, as columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.connectors.decoders.common.columns import NotVectorizable, fields, places, true_rows


class RowPairs:
    """``columns``: of all rows, those before changes first, by name. ``change_of``: row → its change; ``at_before``,
    ``at_after``: change → its rows, NULL where there is none; ``twin``: row after → the row before it."""

    def __init__(self, before: pa.StructArray, after: pa.StructArray) -> None:
        has_before, has_after = before.is_valid(), after.is_valid()
        befores = pc.sum(has_before).as_py()
        self.at_before, self.at_after = places(has_before, 0), places(has_after, befores)
        self.change_of = np.concatenate([true_rows(has_before), true_rows(has_after)])
        self.is_before = pa.array(np.arange(len(self.change_of)) < befores)
        self.twin = pa.concat_arrays([pa.nulls(befores, pa.int64()), self.at_before.filter(has_after)])
        parts = fields(before.drop_null()), fields(after.drop_null())
        self.columns = {name: pa.concat_arrays([part[name] for part in parts]) for name in parts[0]}

    @contextmanager
    def odd_changes(self) -> Iterator[None]:
        """Odd rows are raised as their changes."""
        try:
            yield
        except NotVectorizable as odd:
            raise NotVectorizable({int(self.change_of[row]) for row in odd.rows}) from None
