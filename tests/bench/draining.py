"""A channel of change events read into the change log, against a client that only counts them."""

from __future__ import annotations

import time
from itertools import count
from pathlib import Path

from airflow_cdc_provider.connectors.sources.salesforce.positions import channel_position
from airflow_cdc_provider.connectors.sources.salesforce.proto import CUSTOM
from airflow_cdc_provider.connectors.sources.salesforce.source import SalesforceSource
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.spec.definition import Source, TableRule
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.salesforce.process import OrgProcess
from airflow_cdc_provider.staging.local_store import LocalStore
from spark_jobs.windows.record_files import RecordFile
from spark_jobs.windows.window_writer import LandedSplit, Limits, land_changes
from tests.bench.figures import Figure, alternating, seconds

RECORDS, AT_ONCE, ROUNDS, IDLE_S = 1_000, 200, 3, 2
PER_S = 15_000
OBJECT = "Account"


def drain(folder: Path, events: int) -> list[Figure]:
    """``events`` updates of two fields, in transactions of AT_ONCE."""
    with OrgProcess("--size", "empty") as org:
        org.admin("rules", overflow=10**9, merge=False)
        source = opened(org)
        ids = org.admin("load", object=OBJECT, records=[{"Name": f"A {n}"} for n in range(RECORDS)])["ids"]
        start = source.open_stream([OBJECT])
        for n in range(events // AT_ONCE):
            at = n * AT_ONCE % RECORDS
            values = {"Phone": str(n), "NumberOfEmployees": n}
            org.admin("update", object=OBJECT, ids=ids[at : at + AT_ONCE], values=values)
        ours, counting = alternating(
            ROUNDS, lambda: landed(source, start, folder, events), lambda: counted(source, start, events)
        )
    return [
        Figure(
            f"drain of {events:,} change events / a client that counts them",
            ours / counting,
            "x",
            f"≥ {PER_S:,}/s, or all that the org serves",
            events / ours >= min(PER_S, events / counting),
            f"ours {events / ours:,.0f} events/s into the change log; the sandbox org serves {events / counting:,.0f}",
        )
    ]


def opened(org: OrgProcess) -> SalesforceSource:
    extra = {"consumer_key": org.client_id, "consumer_secret": org.client_secret, "instance_url": org.instance_url}
    options = {"pubsub_endpoint": org.pubsub_endpoint, "pubsub_tls": False, "idle": IDLE_S}
    return SalesforceSource(Source("salesforce", "crm", options=options), ConnectionInfo("crm", extra=extra), "crm")


def landed(source: SalesforceSource, start: Position, folder: Path, events: int) -> float:
    """Seconds of one window."""
    schema = next(one for one in source.tables() if one.table == OBJECT)
    task = TableTask(OBJECT, "t", schema, TableRule(OBJECT), "0" * 64, TableState.REPLICATING)
    (split,) = source.splits(start, start)
    store, made = LocalStore(f"{folder}/{time.monotonic_ns()}"), count()
    found: list[LandedSplit] = []

    def window() -> None:
        items = source.read(split, [task], 1)
        # A transaction ends where the next one begins, the last one after an idle time that is not measured.
        limits = Limits(window_records=events - AT_ONCE)
        found.append(
            land_changes(
                items, [OBJECT], None, lambda _: RecordFile(store, f"{next(made)}.parquet"), ignore_progress, limits
            )
        )

    took = seconds(window)
    assert found[0].records == events - AT_ONCE
    return took


def ignore_progress(records: int) -> None:
    """The progress is not reported."""


def counted(source: SalesforceSource, start: Position, events: int) -> float:
    channel, began, found = source.options.channel, time.monotonic(), 0
    with source.org.pubsub.connected() as connection:
        for delivery in connection.deliveries(channel, CUSTOM, channel_position(start, channel).replay_id, IDLE_S):
            found += len(delivery.events)
            if found >= events:
                break
    assert found == events
    return time.monotonic() - began
