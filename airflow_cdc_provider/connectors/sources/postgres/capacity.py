"""How many copies can run at once: each uses a replication slot and a WAL sender for its duration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.sources.postgres.table_facts import typed_row
from airflow_cdc_provider.core.errors import Problem

if TYPE_CHECKING:
    from psycopg import Connection

SENDERS_OF_THE_STREAM = 1
"""For the window that is read while tables are copied."""

CAPACITY = """
SELECT current_setting('max_replication_slots')::int AS max_slots,
       (SELECT count(*) FROM pg_replication_slots)::int AS slots,
       NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = %s) AS stream_missing,
       current_setting('max_wal_senders')::int AS max_senders,
       (SELECT count(*) FROM pg_stat_replication)::int AS senders
"""


@dataclass(frozen=True)
class Capacity:
    """The limits of the server and what is in use. ``stream_missing``: the stream's slot does not exist yet."""

    max_slots: int
    slots: int
    stream_missing: bool
    max_senders: int
    senders: int

    @property
    def slots_for_copies(self) -> int:
        return self.max_slots - self.slots - self.stream_missing

    @property
    def senders_for_copies(self) -> int:
        return self.max_senders - self.senders - SENDERS_OF_THE_STREAM

    @property
    def copies(self) -> int:
        """The number of copies that can run at once. At least one: it waits until the server has a free slot."""
        return max(1, min(self.slots_for_copies, self.senders_for_copies))


def read_capacity(connection: Connection[Any], slot: str) -> Capacity:
    """``slot``: the slot of the stream."""
    capacity = typed_row(connection, Capacity, CAPACITY, slot)
    assert capacity is not None
    return capacity


def capacity_problems(capacity: Capacity, location: str) -> Iterator[Problem]:
    if capacity.slots_for_copies < 1:
        needed = capacity.slots + capacity.stream_missing + 1
        yield Problem(
            "SRC002",
            "no replication slot is free",
            location,
            f"max_replication_slots = {capacity.max_slots}, {capacity.slots} in use",
            "one slot for the stream and one for a copy",
            f"ALTER SYSTEM SET max_replication_slots = {needed + 2}; then restart the server",
        )
    if capacity.senders_for_copies < 1:
        needed = capacity.senders + SENDERS_OF_THE_STREAM + 1
        yield Problem(
            "SRC003",
            "too few WAL senders are free",
            location,
            f"max_wal_senders = {capacity.max_senders}, {capacity.senders} in use",
            "one sender for a window and one for a copy",
            f"ALTER SYSTEM SET max_wal_senders = {needed + 2}; then restart the server",
        )
