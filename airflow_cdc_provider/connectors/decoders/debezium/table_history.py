"""The names and columns that a table has had, by the statements of a schema-change topic. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from airflow_cdc_provider.connectors.decoders.common.message import RenamedTable
from airflow_cdc_provider.connectors.decoders.debezium.statements import TableStatement


@dataclass(frozen=True)
class TableVersion:
    """``table``, ``columns``: the names from the statement with this number on. ``statement``: None for what precedes
    the first one that is known."""

    number: int
    table: str
    columns: tuple[str, ...]
    statement: TableStatement | None = None


@dataclass(frozen=True)
class TableHistory:
    """Of one table, whatever its name. ``exists``: it was not dropped, and no other one replaced it."""

    versions: tuple[TableVersion, ...]
    exists: bool

    def left(self, name: str) -> int:
        """The number of the statement that took this name away for the last time; 0 if the table never had it."""
        pairs = pairwise(self.versions)
        return max((after.number for before, after in pairs if before.table == name != after.table), default=0)


def table_histories(statements: Iterable[TableStatement]) -> list[TableHistory]:
    ended: list[TableHistory] = []
    current: dict[str, tuple[TableVersion, ...]] = {}
    for number, statement in enumerate(statements, 1):
        versions = current.pop(statement.previous, ()) if statement.previous else ()
        before = _before(statement)
        if versions and before and lower_case(versions[-1].columns) != lower_case(before[0].columns):
            ended.append(TableHistory(versions, False))  # statements in between are missing
            versions = ()
        if replaced := current.pop(statement.table, ()):
            ended.append(TableHistory(replaced, False))
        if statement.columns is not None:
            version = TableVersion(number, statement.table, statement.columns, statement)
            current[statement.table] = (*(versions or before), version)
    return [*ended, *(TableHistory(versions, True) for versions in current.values())]


def _before(statement: TableStatement) -> tuple[TableVersion, ...]:
    """What preceded the statement, as far as its text shows it: a topic loses its old messages."""
    if statement.previous is None or statement.columns is None:
        return ()
    former = {new.lower(): old for old, new in statement.renamed.items()}
    added = lower_case(statement.added)
    kept = (former.get(name.lower(), name) for name in statement.columns if name.lower() not in added)
    return (TableVersion(0, statement.previous, tuple(dict.fromkeys((*kept, *statement.dropped)))),)


def lower_case(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)


def renamed_tables(histories: Sequence[TableHistory]) -> dict[str, RenamedTable]:
    """By each former name that no other table has got since then."""
    found: dict[str, RenamedTable] = {}
    for history in histories:
        names = tuple(dict.fromkeys(version.table for version in history.versions))
        now = history.versions[-1].table
        if not history.exists or len(names) < 2:
            continue
        others = [one for one in histories if one is not history]
        former = [name for name in names if name != now]
        if any(_has_since(others, name, history.left(name)) for name in former):
            continue
        since = dict(_since(history))
        for at, name in enumerate(former):
            found[name] = RenamedTable(now, {later: since[later] for later in (*former[at + 1 :], now)})
    return found


def _has_since(histories: Iterable[TableHistory], name: str, number: int) -> bool:
    return any(one.table == name and one.number > number for history in histories for one in history.versions)


def _since(history: TableHistory) -> Iterator[tuple[str, str]]:
    """Name → the position at which the table got it first; the last of equal names counts in a dict."""
    for before, after in reversed([*pairwise(history.versions)]):
        if before.table != after.table and after.statement is not None:
            yield after.table, after.statement.position
