"""Which windows contain all changes of a table that the source had when they began."""

from __future__ import annotations

from functools import cached_property

from airflow_cdc_provider.core.errors import StagingInvalid
from airflow_cdc_provider.staging.change_log import ChangeLog


class WholeWindows:
    """For many questions about one log: each manifest is read once."""

    def __init__(self, log: ChangeLog) -> None:
        self.log = log
        self._known: dict[int, frozenset[str]] = {}

    def is_replayed(self, table: str, first: int, last: int) -> bool:
        """Whether one of these windows contains every change of the table that the source had when the window began: a
        row that was read earlier is not set back after it. A window that was removed counts as one. Raises what
        ``ChangeLog.manifest`` raises if ``last`` is missing."""
        if first > last:
            return False
        if table in self._tables_in(last):
            return True
        return first < self._oldest or any(self._is_whole(table, number) for number in range(last - 1, first - 1, -1))

    @cached_property
    def _oldest(self) -> int:
        return max(self.log.oldest(), 1)

    def _is_whole(self, table: str, window: int) -> bool:
        """Another run may have removed the window meanwhile."""
        try:
            return table in self._tables_in(window)
        except StagingInvalid:
            if window < self.log.oldest():
                return True
            raise

    def _tables_in(self, window: int) -> frozenset[str]:
        """Those that end in the window where their source ended."""
        if window not in self._known:
            parts = self.log.manifest(window).tables
            self._known[window] = frozenset(table for table, part in parts.items() if not part.cut)
        return self._known[window]
