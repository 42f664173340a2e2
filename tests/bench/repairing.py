"""Seven damaged rows in a large table: how many rows are read to find and to repair them."""

from __future__ import annotations

from airflow_cdc_provider.core.decisions.steps import StepKind
from tests.bench.equality import must_be_identical
from tests.bench.figures import Figure
from tests.bench.rig import Rig, submit
from tests.bench.streaming import Stream

WANTED_PER_CENT = 1.0
UNSEEN = (
    "update items set total = total + 1 where id in (7, 1234, {last})",
    "delete from items where id in (99, {last} / 2)",
    "insert into items (id, note) values (-1, 'missing'), ({last} * 2, 'missing')",
)
"""Changes that the stream does not carry: the copy is as if damaged."""


def measure(rig: Rig, rows: int) -> list[Figure]:
    stream = Stream(rig, rows)
    replicator = stream.replicator
    publication = f"alter publication {replicator.definition.name} {{}} table items"
    rig.execute(stream.database, publication.format("drop"))
    for statement in UNSEEN:
        rig.execute(stream.database, statement.format(last=rows))
    rig.execute(stream.database, publication.format("add"))
    step = replicator.step(StepKind.VERIFY, window=1, lo=stream.lo, repair_tables=("public.items",))
    (table,) = submit(replicator, step).tables
    found, phases = table.detail, table.phases
    assert (found["differing"], found["repaired"]) == (7, 7), found
    must_be_identical(rig, stream.database, replicator)
    per_cent = 100 * found["rows_read"] / rows
    return [
        Figure(
            f"rows read to repair 7 of {rows:,}",
            per_cent,
            "%",
            f"< {WANTED_PER_CENT:g} %",
            per_cent < WANTED_PER_CENT,
            f"{found['rows_read']:,} rows, {found['intervals']} intervals; compare {phases['compare']:.1f} s, "
            f"repair {phases['repair']:.1f} s",
        )
    ]
