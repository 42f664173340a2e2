"""The sections of the benchmarks, each a function that returns figures."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.bench import (
    copying,
    decoding,
    draining,
    feeding,
    overflowing,
    repairing,
    shaping,
    streaming,
    ticking,
    warehousing,
)
from tests.bench.figures import Figure, table
from tests.bench.peers import comparing
from tests.bench.rig import Rig

MILLION = 1_000_000
FULL = bool(os.environ.get("FULL"))
PEERS = bool(os.environ.get("PEERS"))
WAREHOUSES = {"snowflake": MILLION, "bigquery": MILLION, "redshift": MILLION, "spanner": MILLION if FULL else 100_000}
"""The rows that are changed, all of them. The stand-in for Spanner is written in Python."""

QUIET = {"autovacuum": "off", "checkpoint_timeout": "1h", "max_wal_size": "16GB"}
"""Without the upkeep of the source, which starts at any time and would be measured with the section that runs then."""


def sections(rig: Rig, folder: Path) -> dict[str, Callable[[], list[Figure]]]:
    return {
        "parse": lambda: ticking.parsing(folder, 500),
        "decode": decoding.measure,
        "idle": lambda: [*ticking.idle(rig, 4), *ticking.idle(rig, 50)],
        "snapshot": lambda: copying.measure(rig, 10_000_000 if FULL else 2_000_000, 3 if FULL else 1),
        "extract": lambda: streaming.extraction(rig, 500_000),
        "merge": lambda: streaming.mixed_merge(rig, 1_000_000, 100_000),
        "slope": lambda: streaming.slope(rig, 1_000_000, 16_000_000 if FULL else 4_000_000, 20_000),
        "iceberg-merge": lambda: streaming.mixed_merge(rig, 1_000_000, 100_000, "iceberg"),
        "iceberg-slope": lambda: streaming.slope(rig, 1_000_000, 16_000_000 if FULL else 4_000_000, 20_000, "iceberg"),
        "repair": lambda: repairing.measure(rig, 10_000_000 if FULL else 1_000_000),
        "feed": lambda: feeding.window(folder, 1_000_000),
        "drain": lambda: draining.drain(folder, 100_000),
        "resync": lambda: overflowing.resync(folder, 1_000_000),
        "warehouses-postgres": lambda: warehousing.merging(rig, "postgres", 1_800_000, 100_000),
        **{
            f"warehouses-{kind}": partial(warehousing.merging, rig, kind, rows, rows)
            for kind, rows in WAREHOUSES.items()
        },
        "tick": lambda: ticking.ticks(rig, 10, 1_000, 3 if FULL else 1),
        "shapes": lambda: shaping.shapes(rig, 3 if FULL else 1),
        "tables": lambda: ticking.many_tables(rig, 50, 1_000),
        **(peers(rig) if PEERS else {}),
    }


def peers(rig: Rig) -> dict[str, Callable[[], list[Figure]]]:
    return {
        "peers-snapshot": lambda: comparing.snapshots(rig, 2_000_000),
        "peers-extract": lambda: comparing.extraction(rig, 500_000),
        "peers-warehouse": lambda: warehousing.merging(rig, "postgres", MILLION, MILLION, beside_dlt=True),
        "peers-merge": lambda: comparing.merges(rig, 1_000_000, 100_000),
    }


def measure_sections(chosen: Sequence[str]) -> int:
    """``chosen``: names of sections, or their beginnings; all if empty. Returns 1 if a figure misses its target."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="cdc-bench-") as folder, EmbeddedPostgres(QUIET) as server:
        for name, measure in sections(Rig(server, Path(folder)), Path(folder)).items():
            if chosen and not any(name == one or name.startswith(f"{one}-") for one in chosen):
                continue
            started = time.monotonic()
            figures += measure()
            print(
                f"{name}: {time.monotonic() - started:.0f} s, load {os.getloadavg()[0]:.1f}",
                file=sys.stderr,
                flush=True,
            )
    print(table(figures))
    return 0 if all(figure.reached for figure in figures) else 1
