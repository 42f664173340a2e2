"""Which row holds a key at the end of a transaction in which two rows held it.

A swap in one statement departs from a key after another row has arrived there: the last entry of the key is a
departure, and yet a row stays. If the last entry is anything else, it is right; so only such keys of such transactions
are examined. Whole images identify rows (equal copies are interchangeable), else the row ids of the source.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_cdc_provider.core.log.change_records import ARRIVES, DEPARTS, Operation
from airflow_cdc_provider.core.table.merge_plan import AMBIGUOUS_KEY
from spark_jobs.folds.key_groups import KeyGroups
from spark_jobs.folds.lives import FoldError

DELETE = Operation.DELETE.value


class Step(NamedTuple):
    """An entry of a key, with its number among all entries (``at``)."""

    at: int
    order_key: str
    op: str
    in_place: bool
    before: str | None
    after: str | None
    whole: bool
    row_id: str | None
    phase: int | None
    link_id: str | None

    @property
    def deletes(self) -> bool:
        return self.op == DELETE


def without_passing_rows(groups: KeyGroups) -> pa.Table:
    """The entries, of which the last one of each key is what its transaction left.

    Removed are departures after the arrival of the row that stays, and all entries of rows that arrived and left. A
    departure without image and row id is taken as it is. Raises FoldError if two rows stay, or if a departure to be
    removed takes columns to another key that no record has.
    """
    entries = groups.entries
    arrived = pc.fill_null(pc.equal(entries["phase"], ARRIVES), False)
    partial = entries.filter(pc.and_(arrived, pc.invert(entries["after_complete"])))
    carrying = set(partial["link_id"].drop_null().to_pylist())
    kept = np.ones(len(entries), bool)
    for steps in _doubtful(groups):
        for step in _left_out(steps):
            if step.phase == DEPARTS and step.link_id in carrying:
                raise FoldError(AMBIGUOUS_KEY)
            kept[step.at] = False
    return entries if kept.all() else entries.filter(pa.array(kept))


def _doubtful(groups: KeyGroups) -> Iterator[Sequence[Step]]:
    """The entries of each key in each transaction that a row arrived at and that ends with a departure, if images or
    ids identify the rows."""
    deletes = pc.equal(groups.entries["op"], DELETE).to_numpy()
    both = groups.any_of(deletes) & groups.any_of(~deletes)
    chosen = np.flatnonzero(both[groups.codes] & pc.is_valid(groups.entries["tx_id"]).to_numpy())
    entries = groups.entries.take(pa.array(chosen))
    of_key: defaultdict[tuple[str, str], list[Step]] = defaultdict(list)
    for at, entry in zip(chosen.tolist(), entries.to_pylist(), strict=True):
        of_key[entry["tx_id"], entry["k"]].append(_step(at, entry))
    for steps in of_key.values():
        steps.sort(key=lambda step: step.order_key)
        whole = all(step.whole for step in steps)
        arrived = any(not step.deletes for step in steps)
        if steps[-1].deletes and arrived and (whole or all(step.row_id is not None for step in steps)):
            yield steps


def _step(at: int, entry: dict[str, object]) -> Step:
    in_place = entry["op"] != DELETE and entry["key"] == entry["key_before"]
    complete = entry["before_complete"] if entry["op"] == DELETE else entry["after_complete"]
    whole = bool(complete and (not in_place or entry["before_complete"]))
    same = {name: entry[name] for name in ("before", "after", "row_id", "phase", "link_id")}
    return Step(at, str(entry["order_key"]), str(entry["op"]), in_place, whole=whole, **same)  # type: ignore[arg-type]


def _left_out(steps: Sequence[Step]) -> list[Step]:
    """``moves``: per row, when it came to hold the key (1) or left it (-1); a change in place is both."""
    by_id = not all(step.whole for step in steps)
    moves: defaultdict[str | None, list[tuple[str, int]]] = defaultdict(list)
    for step in steps:
        if step.deletes or step.in_place:
            moves[step.row_id if by_id else step.before].append((step.order_key, -1))
        if not step.deletes:
            moves[step.row_id if by_id else step.after].append((step.order_key, 1))
    stays, leaves = list[str](), False
    for row in moves.values():
        row.sort()
        first, last, net = row[0][1], row[-1][1], sum(n for _, n in row)
        if (last if by_id else net) > 0:
            stays.append(max(order_key for order_key, n in row if n > 0))
        leaves |= first < 0 and last < 0 if by_id else net < 0
    if len(stays) > 1:
        raise FoldError(AMBIGUOUS_KEY)
    if not stays and not leaves:
        return list(steps)
    return [step for step in steps if stays and step.order_key > stays[0]]
