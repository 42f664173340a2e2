"""Our own tables in the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow_cdc_provider.targets.spanner.names import CONTROL, CUT, PARTS, quoted

TEXT = "STRING(MAX)"

TABLES: Mapping[str, tuple[Mapping[str, str], Sequence[str]]] = {
    CONTROL: (
        {
            "target_table": f"{TEXT} NOT NULL",
            "identity": f"{TEXT} NOT NULL",
            "replicator": TEXT,
            "source_table": TEXT,
            "fence": "INT64",
            "cursor_window": "INT64",
            "nonce": TEXT,
            "record": TEXT,
            "begun": TEXT,
            "loading": TEXT,
        },
        ("target_table",),
    ),
    PARTS: (
        {
            "target_table": f"{TEXT} NOT NULL",
            "nonce": f"{TEXT} NOT NULL",
            "phase": "INT64 NOT NULL",
            "task": f"{TEXT} NOT NULL",
            "number": "INT64 NOT NULL",
            "slice": "INT64 NOT NULL",
            "content": "BYTES(MAX)",
            "applied": "BOOL NOT NULL",
            "inserted": "INT64",
            "updated": "INT64",
            "deleted": "INT64",
        },
        ("target_table", "nonce", "phase", "task", "number", "slice"),
    ),
    CUT: (
        {
            "replicator": f"{TEXT} NOT NULL",
            "cut_window": "INT64 NOT NULL",
            "cut_at": f"{TEXT} NOT NULL",
            "read_at": "TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp = true)",
            "tables": f"ARRAY<{TEXT}>",
        },
        ("replicator",),
    ),
}
"""Columns and primary key of each."""


def create_own_tables() -> list[str]:
    """Idempotent statements."""
    return [_create_table(name, columns, key) for name, (columns, key) in TABLES.items()]


def _create_table(name: str, columns: Mapping[str, str], key: Sequence[str]) -> str:
    listed = ", ".join(f"{quoted(column)} {kind}" for column, kind in columns.items())
    return f"CREATE TABLE IF NOT EXISTS {quoted(name)} ({listed}) PRIMARY KEY ({', '.join(map(quoted, key))})"
