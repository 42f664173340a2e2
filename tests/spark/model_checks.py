"""Checks of a model run: every version of the table, not only the newest, is a state of the source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from deltalake import DeltaTable

from airflow_cdc_provider.core.spec.definition import OnDelete
from tests.delta_tables import read
from tests.model.histories import COLUMNS, KEY, RandomHistories
from tests.model.source import Row, Rows
from tests.spark.model_run import Commit, ModelRun
from tests.spark.scripted_table import ScriptedTable

Keys = frozenset[Row]


@dataclass(frozen=True)
class State:
    """``flagged``: the keys of rows marked deleted. ``may``: those that may be flagged or not, because their rows
    existed only between two commits: only a repair restores them."""

    rows: Rows
    flagged: Keys = frozenset()
    may: Keys = frozenset()


def check_every_version(run: ModelRun) -> None:
    """Raises an AssertionError with one history whose rows are wrong, and its changes."""
    found = _versions(run.table, range(run.commits[-1].version + 1))
    expected = State(Counter())
    commits = {commit.version: commit for commit in run.commits}
    position = 0
    for version, actual in enumerate(found):
        if commit := commits.get(version):
            expected, position = _after(expected, run, position, commit), commit.position
        what = f"version {version} is not position {position}"
        wrong = (actual.rows - expected.rows) + (expected.rows - actual.rows)
        assert not wrong, f"{what}: {_difference(run.histories, next(iter(wrong))[0], actual.rows, expected.rows)}"
        wrong_flags = (expected.flagged - actual.flagged) | (actual.flagged - expected.flagged - expected.may)
        assert not wrong_flags, (
            f"{what}: flagged "
            f"{_difference(run.histories, next(iter(wrong_flags))[0], actual.flagged, expected.flagged)}"
        )


def check_newest_version(table: ScriptedTable, histories: RandomHistories) -> None:
    """The newest version alone. Raises AssertionError as ``check_every_version``."""
    version = table.target_state().version
    assert version is not None
    source, end, on_delete = histories.source, len(histories.source.transactions), table.rule.on_delete
    (actual,) = _versions(table, [version])
    start, rows = source.state_at(0), source.state_at(end)
    expected = source.kept(start, 0, end) if on_delete is OnDelete.IGNORE else rows
    wrong = (actual.rows - expected) + (expected - actual.rows)
    assert not wrong, _difference(histories, next(iter(wrong))[0], actual.rows, expected)
    wrong_flags = (_keys(start) - _keys(rows)) - actual.flagged if on_delete is OnDelete.SOFT else Keys()
    assert not wrong_flags, (
        f"not flagged: {_difference(histories, next(iter(wrong_flags))[0], actual.flagged, wrong_flags)}"
    )


def _after(before: State, run: ModelRun, since: int, commit: Commit) -> State:
    """The expected state after a commit, from the expected state before it."""
    source = run.histories.source
    rows = source.state_at(commit.position)
    if commit.kind == "copy" or run.on_delete is OnDelete.HARD:
        return State(rows)
    if run.on_delete is OnDelete.IGNORE:
        return State(source.kept(before.rows, since, commit.position))
    keys = _keys(rows)
    now = replace(before, rows=rows, flagged=(before.flagged | _keys(before.rows)) - keys)
    return (
        replace(now, may=source.keys_between(commit.since, commit.position) - keys) if commit.kind == "repair" else now
    )


def _keys(rows: Rows) -> Keys:
    return frozenset(row[:KEY] for row in rows)


def _versions(table: ScriptedTable, numbers: Sequence[int]) -> list[State]:
    path = f"{table.definition.target.location}/t"
    return [_state(table, DeltaTable(path, version=number)) for number in numbers]


def _state(table: ScriptedTable, version: DeltaTable) -> State:
    live: Rows = Counter()
    flagged: set[Row] = set()
    for row in read(version).to_pylist():
        values = tuple(_as_in_model(row[name]) for name in COLUMNS)
        if table.rule.on_delete is OnDelete.SOFT and row["_cdc_deleted"]:
            flagged.add(values[:KEY])
        else:
            live[values] += 1
    return State(live, frozenset(flagged))


def _as_in_model(value: object) -> object:
    """Floats as text, as in the model."""
    if not isinstance(value, float):
        return value
    return str(value) if value == value else "NaN"


def _difference(histories: RandomHistories, history: object, actual: Rows | Keys, expected: Rows | Keys) -> str:
    lines = [f"history {history}"]
    for number, window in enumerate(histories.windows, 1):
        lines += [f"  window {number}: {one}" for one in window if one.history == history or not one.changes]
    for name, rows in (("actual", actual), ("expected", expected)):
        lines += [f"  {name}: {sorted(repr(row) for row in rows if row[0] == history)}"]
    return "\n".join(lines)
