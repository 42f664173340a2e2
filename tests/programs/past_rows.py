"""What one copy held when it was last idle: rows that it keeps, and versions, must not change later."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.programs.program import Setup
from tests.programs.source import Row, Table

Faults = Callable[[Any, Mapping[str, Any], Mapping[str, Any]], Iterator[str]]
"""Of a key: the row that is expected, by names of columns, and the row of the copy."""


@dataclass
class Past:
    """``rows``: by key, those of the source, and those that the copy keeps although they left the source. ``written``
    and ``truncations``: of the table then. ``versions``: by key, the row at each idle point, where it was another."""

    rows: dict[Any, Row] = field(default_factory=dict)
    written: dict[Any, int] = field(default_factory=dict)
    truncations: int = 0
    versions: dict[Any, list[Row]] = field(default_factory=dict)

    def remember(self, table: Table, now: Mapping[Any, Row], setup: Setup, unsure: set[Any]) -> None:
        """``now``: the rows of the source that the copy is equal to. ``unsure``: keys about whose rows an operator has
        decided, or has to."""
        gone = {key: row for key, row in self.rows.items() if key not in table.rows and self.stays(key, table, setup)}
        exact = {key: row for key, row in gone.items() if self.is_exact(key, table, setup)}
        self.rows = {key: row for key, row in {**exact, **now}.items() if key not in unsure}
        self.written, self.truncations = dict(table.written), table.truncations
        for key in unsure:
            self.versions.pop(key, None)
        for key, row in now.items():
            states = self.versions.setdefault(key, [])
            if key not in unsure and (not states or states[-1] != row):
                states.append(row)

    def stays(self, key: Any, table: Table, setup: Setup) -> bool:
        """Whether the copy keeps the row, marked as deleted or not."""
        if setup.on_delete == "soft":
            return True
        deletes = setup.on_delete == "ignore" or "delete" in setup.ignore
        truncates = setup.on_delete == "ignore" or "truncate" in setup.ignore
        return deletes if self.truncations == table.truncations else deletes and truncates

    def is_exact(self, key: Any, table: Table, setup: Setup) -> bool:
        """Whether the values of a kept row are known: no write came between the idle point and its end."""
        return not setup.filtered and table.written.get(key, 0) - self.written.get(key, 0) <= 1

    def lost_rows(
        self, table: Table, setup: Setup, kept: Mapping[Any, Mapping[str, Any]], excused: set[Any], faults: Faults
    ) -> Iterator[str]:
        """``kept``: the rows of the copy, also those that are marked as deleted."""
        for key in sorted(self.rows.keys() - table.rows.keys() - excused, key=str):
            if not self.stays(key, table, setup):
                continue
            if key not in kept:
                yield f"{key!r} left the source and is not kept: {_named(table, self.rows[key])}"
            elif self.is_exact(key, table, setup):
                yield from (f"kept row: {fault}" for fault in faults(key, _named(table, self.rows[key]), kept[key]))

    def lost_versions(
        self, table: Table, versions: Mapping[Any, Sequence[Mapping[str, Any]]], excused: set[Any], faults: Faults
    ) -> Iterator[str]:
        """``versions``: of the copy, by key, in their order."""
        for key in sorted(self.versions.keys() - excused, key=str):
            left = list(versions.get(key, ()))
            for state in self.versions[key]:
                expected = _named(table, state)
                while left and any(faults(key, expected, left[0])):
                    del left[0]
                if not left:
                    found = [dict(version) for version in versions.get(key, ())]
                    yield f"a version of {key!r} is lost: {expected}; there are {found}"
                    break


def _named(table: Table, row: Row) -> dict[str, Any]:
    return {column.name: row[column.id] for column in table.columns if column.id in row}
