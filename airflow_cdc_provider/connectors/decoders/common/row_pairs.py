"""Before and after images of changes, as columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.connectors.decoders.common.columns import NotVectorizable, fields, number_rows, true_rows


class RowPairs:
    """The rows of all changes, before images first. ``columns``: by name. ``change_of``: row → its change;
    ``before_row``, ``after_row``: change → its row, NULL if there is none; ``previous``: after image → before image of
    the same change."""

    def __init__(self, before: pa.StructArray, after: pa.StructArray) -> None:
        has_before, has_after = before.is_valid(), after.is_valid()
        before_count = pc.sum(has_before).as_py()
        self.before_row, self.after_row = number_rows(has_before, 0), number_rows(has_after, before_count)
        self.change_of = np.concatenate([true_rows(has_before), true_rows(has_after)])
        self.is_before = pa.array(np.arange(len(self.change_of)) < before_count)
        self.previous = pa.concat_arrays([pa.nulls(before_count, pa.int64()), self.before_row.filter(has_after)])
        parts = fields(before.drop_null()), fields(after.drop_null())
        self.columns = {name: pa.concat_arrays([part[name] for part in parts]) for name in parts[0]}

    @contextmanager
    def rows_as_changes(self) -> Iterator[None]:
        """Converts the rows of a NotVectorizable to their changes."""
        try:
            yield
        except NotVectorizable as error:
            raise NotVectorizable({int(self.change_of[row]) for row in error.rows}) from None
