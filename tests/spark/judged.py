"""The judgement on a played story: every version the table had, not only the newest, is a state of the source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from deltalake import DeltaTable

from airflow_cdc_provider.core.spec.definition import OnDelete
from tests.delta_tables import read
from tests.model.histories import COLUMNS, KEY, RandomHistories
from tests.model.source import Row, Rows
from tests.spark.hand_made import HandMade
from tests.spark.played import Commit, Played

Keys = frozenset[Row]


@dataclass(frozen=True)
class State:
    """``flagged``: the keys of rows marked deleted. ``may``: those that may be flagged or not, because their rows were
    born and died between two commits: only a repair brings them back."""

    rows: Rows
    flagged: Keys = frozenset()
    may: Keys = frozenset()


def judge(played: Played) -> None:
    """Raises AssertionError that tells one history whose rows are wrong, and what happened to it."""
    found = _versions(played.table, range(played.commits[-1].version + 1))
    wanted = State(Counter())
    commits = {commit.version: commit for commit in played.commits}
    position = 0
    for version, held in enumerate(found):
        if commit := commits.get(version):
            wanted, position = _after(wanted, played, position, commit), commit.position
        what = f"version {version} is not position {position}"
        wrong = (held.rows - wanted.rows) + (wanted.rows - held.rows)
        assert not wrong, f"{what}: {_told(played.story, next(iter(wrong))[0], held.rows, wanted.rows)}"
        stray = (wanted.flagged - held.flagged) | (held.flagged - wanted.flagged - wanted.may)
        assert not stray, f"{what}: flagged {_told(played.story, next(iter(stray))[0], held.flagged, wanted.flagged)}"


def judge_end(table: HandMade, told: RandomHistories) -> None:
    """The newest version alone. Raises AssertionError as ``judge``."""
    version = table.held().version
    assert version is not None
    source, end, on_delete = told.source, len(told.source.transactions), table.rule.on_delete
    (held,) = _versions(table, [version])
    start, rows = source.state_at(0), source.state_at(end)
    wanted = source.kept(start, 0, end) if on_delete is OnDelete.IGNORE else rows
    wrong = (held.rows - wanted) + (wanted - held.rows)
    assert not wrong, _told(told, next(iter(wrong))[0], held.rows, wanted)
    stray = (_keys(start) - _keys(rows)) - held.flagged if on_delete is OnDelete.SOFT else Keys()
    assert not stray, f"not flagged: {_told(told, next(iter(stray))[0], held.flagged, stray)}"


def _after(before: State, played: Played, since: int, commit: Commit) -> State:
    """What the copy must hold behind a commit, by what it had to hold before."""
    source = played.story.source
    rows = source.state_at(commit.position)
    if commit.kind == "copy" or played.on_delete is OnDelete.HARD:
        return State(rows)
    if played.on_delete is OnDelete.IGNORE:
        return State(source.kept(before.rows, since, commit.position))
    keys = _keys(rows)
    now = replace(before, rows=rows, flagged=(before.flagged | _keys(before.rows)) - keys)
    return (
        replace(now, may=source.keys_between(commit.since, commit.position) - keys) if commit.kind == "repair" else now
    )


def _keys(rows: Rows) -> Keys:
    return frozenset(row[:KEY] for row in rows)


def _versions(table: HandMade, numbers: Sequence[int]) -> list[State]:
    path = f"{table.definition.target.location}/t"
    return [_state(table, DeltaTable(path, version=number)) for number in numbers]


def _state(table: HandMade, version: DeltaTable) -> State:
    live: Rows = Counter()
    flagged: set[Row] = set()
    for row in read(version).to_pylist():
        values = tuple(_as_told(row[name]) for name in COLUMNS)
        if table.rule.on_delete is OnDelete.SOFT and row["_cdc_deleted"]:
            flagged.add(values[:KEY])
        else:
            live[values] += 1
    return State(live, frozenset(flagged))


def _as_told(value: object) -> object:
    """Floats as the model has them: as text."""
    if not isinstance(value, float):
        return value
    return str(value) if value == value else "NaN"


def _told(story: RandomHistories, history: object, held: Rows | Keys, wanted: Rows | Keys) -> str:
    lines = [f"history {history}"]
    for number, window in enumerate(story.windows, 1):
        lines += [f"  window {number}: {one}" for one in window if one.history == history or not one.changes]
    for name, rows in (("held", held), ("wanted", wanted)):
        lines += [f"  {name}: {sorted(repr(row) for row in rows if row[0] == history)}"]
    return "\n".join(lines)
