"""Which rows of its source table a full copy has read."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_cdc_provider.core.spec.conditions import Condition


@dataclass(frozen=True)
class CopyExtent:
    """``rows``: False if it has read none. ``where``: it has read only rows that match these conditions of columns of
    the source, beside the row filter of the table.

    A copy has at least every row that matches now, and every row that changed after it: a row that did not match then
    can match now only by a change."""

    rows: bool = True
    where: tuple[Condition, ...] = ()

    @property
    def is_whole(self) -> bool:
        return self.rows and not self.where


WHOLE = CopyExtent()
