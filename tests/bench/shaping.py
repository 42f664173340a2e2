"""Ticks of 1,000 changes of every kind, each against a tick of plain updates."""

from __future__ import annotations

import time
from dataclasses import dataclass

from airflow_cdc_provider.core.decisions.steps import StepKind, StepResult
from airflow_cdc_provider.core.spec.definition import OnDelete, TableRule
from tests.bench.figures import Figure, alternating
from tests.bench.rig import Rig, submit

TABLE = "public.items"
ROWS, CHANGES = 20_000, 1_000
LIMIT = 1.3
WHOLE_TABLE = TableRule(TABLE)


@dataclass(frozen=True)
class Shape:
    """``setup``: SQL before the first copy. ``change``: SQL of a tick, ``{n}`` is its number."""

    name: str
    change: str
    setup: str = ""
    rule: TableRule = WHOLE_TABLE


PLAIN = Shape("plain", f"update items set total = total + 1 where id <= {CHANGES}")
SHAPES = (
    Shape("moved keys", "update items set id = id + 1000000 where id between {n} * 1000 - 999 and {n} * 1000"),
    Shape(
        "swapped keys under a deferred key",
        f"update items set id = {CHANGES + 1} - id where id <= {CHANGES}",
        "alter table items drop constraint items_pkey, add primary key (id) deferrable initially deferred,"
        " replica identity full",
        TableRule(TABLE, key=("id",)),
    ),
    Shape(
        "several entries of soft-deleted keys",
        "update items set note = 'last' where id > {n} * 1000 and id <= {n} * 1000 + 500;"
        " delete from items where id > {n} * 1000 and id <= {n} * 1000 + 500",
        rule=TableRule(TABLE, on_delete=OnDelete.SOFT),
    ),
    Shape(
        "partial images",
        f"update items set total = total + 1 where id <= {CHANGES}",
        f"alter table items alter note set storage external;"
        f" update items set note = repeat(note, 100) where id <= {CHANGES}",
    ),
    Shape(
        "an added column",
        f"alter table items add column added{{n}} text; update items set added{{n}} = 'new' where id <= {CHANGES}",
    ),
    Shape(
        "a truncate",
        "truncate items; insert into items (id, note) select n, 'new' from generate_series(1, 1000) n",
    ),
    Shape(
        "no key",
        f"update items set total = total + 1 where id <= {CHANGES}",
        "alter table items drop constraint items_pkey, replica identity full",
    ),
)


class ShapeTicker:
    """A replicator of one table, copied; each tick lands and merges one window."""

    def __init__(self, rig: Rig, shape: Shape) -> None:
        self.rig, self.shape, self.number = rig, shape, 0
        self.database = rig.database({"items": ROWS})
        if shape.setup:
            rig.execute(self.database, shape.setup)
        self.replicator = rig.replicator(self.database, ["items"], rules=[shape.rule])
        self.lo = dict(self.replicator.source.open_stream([TABLE]))
        submit(self.replicator, self.replicator.step(StepKind.SNAPSHOT))
        self.last: StepResult | None = None

    def tick(self) -> float:
        self.number += 1
        self.rig.execute(self.database, self.shape.change.format(n=self.number))
        replicator, started = self.replicator, time.monotonic()
        limit = dict(replicator.source.status(self.lo, [TABLE]).limit)
        landed = submit(replicator, replicator.step(StepKind.EXTRACT, window=self.number, lo=self.lo, limit=limit))
        assert landed.window
        self.lo = landed.window.hi
        stage = replicator.step(StepKind.STAGE, window=self.number)
        submit(replicator, stage)
        submit(replicator, replicator.step(StepKind.MERGE, merge_of=stage.attempt, window=self.number))
        return time.monotonic() - started


def shapes(rig: Rig, rounds: int) -> list[Figure]:
    tickers = [ShapeTicker(rig, shape) for shape in (PLAIN, *SHAPES)]
    plain_s, *others_s = alternating(rounds, *(ticker.tick for ticker in tickers))
    return [
        Figure(
            f"tick of 1,000 changes: {shape.name} / plain",
            took_s / plain_s,
            "x",
            f"<= {LIMIT}",
            took_s / plain_s <= LIMIT,
            f"{took_s:.1f} s, plain {plain_s:.1f} s",
        )
        for shape, took_s in zip(SHAPES, others_s, strict=True)
    ]
