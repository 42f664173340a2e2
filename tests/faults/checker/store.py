"""The state store, as rows of its SQLite file."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Store:
    """``tables``: the rows of the index. ``leases``, ``claims``, ``attempts``, ``requests``: those that are open."""

    tables: dict[str, dict[str, Any]]
    leases: tuple[str, ...]
    claims: tuple[str, ...]
    attempts: tuple[str, ...]
    requests: tuple[str, ...]


def read_store(path: Path, replicator: str) -> Store:
    def column(query: str) -> tuple[str, ...]:
        return tuple(" ".join(map(str, row)) for row in connection.execute(query, (replicator,)))

    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)
    try:
        rows = connection.execute('SELECT "table", body FROM cdc_table WHERE replicator = ?', (replicator,))
        return Store(
            tables={table: json.loads(body) for table, body in rows},
            leases=column("SELECT lane, holder FROM cdc_lease WHERE replicator = ?"),
            claims=column('SELECT "table", run_id FROM cdc_claim WHERE replicator = ?'),
            attempts=column("SELECT task_id, id FROM cdc_attempt WHERE closed_at = '' AND replicator = ?"),
            requests=column("SELECT kind, id FROM cdc_command WHERE finished_at = '' AND replicator = ?"),
        )
    finally:
        connection.close()
