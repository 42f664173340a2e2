"""Which column of a row is which column of the copy, by the history of its table. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from airflow_cdc_provider.connectors.decoders.debezium.table_history import TableHistory, TableVersion, lower_case
from airflow_cdc_provider.core.table.column_ids import next_id
from airflow_cdc_provider.core.table.schema import Column


@dataclass(frozen=True)
class ColumnIds:
    """``ids``: of the columns of a row, as those of the copy have them. ``uncopied``: columns of a row that had, when
    the copy was made, a name that is not copied → that name."""

    ids: Mapping[str, str]
    uncopied: Mapping[str, str]


def column_ids(
    histories: Iterable[TableHistory],
    tables: Collection[str],
    copied: Sequence[Column],
    row: Sequence[str],
    selects: Callable[[str], bool],
) -> ColumnIds | None:
    """``tables``: the names that messages have for a table. ``copied``: the columns of its copy; ``row``: those of a
    row. ``selects``: whether a column of the source is copied. None if the statements do not show it, or not without
    doubt: columns of these names may have been those of the table at several times."""
    names, row_names = lower_case(column.name for column in copied), lower_case(row)
    found: list[ColumnIds] = []
    for history in histories:
        selected = {
            number: lower_case(filter(selects, version.columns))
            for number, version in enumerate(history.versions)
            if version.table in tables
        }
        for last in (number for number in selected if selected[number] == row_names):
            for first in (number for number in selected if number <= last and selected[number] == names):
                ids = _ids_after(copied, history.versions[first : last + 1], row)
                if ids not in found:
                    found.append(ids)
    return found[0] if len(found) == 1 else None


def _ids_after(copied: Sequence[Column], versions: Sequence[TableVersion], row: Sequence[str]) -> ColumnIds:
    """``versions``: from the one of the copy to the one of the row."""
    first = {column.name.lower(): column.id or column.name for column in copied}
    others = {name.lower(): name for name in versions[0].columns if name.lower() not in first}
    ids = {**others, **first}
    taken = set(ids.values())
    for version in versions[1:]:
        ids = _next_ids(ids, version, taken)
    found = {name: ids[name.lower()] for name in row}
    uncopied = {name: former for name, former in found.items() if former in others.values()}
    return ColumnIds(
        {name: "" if number == name else number for name, number in found.items() if name not in uncopied}, uncopied
    )


def _next_ids(ids: Mapping[str, str], version: TableVersion, taken: set[str]) -> dict[str, str]:
    """``ids``: by column, before the statement. ``taken``: all ids up to now, also those of dropped columns. The server
    compares names of columns without regard to case."""
    statement = version.statement
    assert statement is not None, "only the first version precedes all statements"
    former = {new.lower(): old.lower() for old, new in statement.renamed.items()}
    replaced = lower_case(statement.added) & lower_case(statement.dropped)
    following = {}
    for name in version.columns:
        old = former.get(name.lower(), name.lower())
        is_same = name.lower() in former or (old not in former.values() and old not in replaced)
        if old in ids and is_same:
            following[name.lower()] = ids[old]
        else:
            following[name.lower()] = next_id(name, taken) if name in taken else name
            taken.add(following[name.lower()])
    return following
