"""A window in which the changes of a table come from another server, with lower positions, or from a connector that
started without its offsets: a hole of the table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from airflow_cdc_provider.core.log.change_log import EXPIRED, Hole, Manifest
from airflow_cdc_provider.core.log.server_orders import ONE_ORIGIN, ServerOrder, join_orders, origins_text

REMEDY = "let the connector copy its tables into new topics or a new folder"
STARTED = (
    "the connector started without its offsets, and did not copy its tables: changes between its last transaction "
    f"before and its first one after the start may be missing; {REMEDY}"
)


def known_orders(previous: Manifest) -> tuple[ServerOrder, ...]:
    """Without those of tables that have a hole there: they are copied again."""
    with_hole = {hole.table for hole in previous.holes}
    return tuple(order for order in previous.orders if order.table not in with_hole)


def with_orders(
    manifest: Manifest, known: Iterable[ServerOrder], seen: Iterable[ServerOrder], channels: Collection[str]
) -> Manifest:
    """``known``: those of the windows before; ``seen``: those of this window. ``channels``: those that are read now. A
    connector that started again may have left out changes of each of its tables."""
    seen = list(seen)
    orders = tuple(join_orders(known, seen))
    details = dict.fromkeys(_tables_left_out(manifest, orders), STARTED)
    details |= {order.table: _behind(order) for order in orders if order.back}
    details |= _mixed(orders, {*channels, *(order.channel for order in seen)})
    holes = [
        Hole(EXPIRED, table, "", position=manifest.hi, detail=detail)
        for table, detail in sorted(details.items())
        if table in manifest.tables
    ]
    return replace(manifest, orders=orders, holes=(*manifest.holes, *holes))


def _behind(order: ServerOrder) -> str:
    servers = ", ".join(sorted(order.back))
    return (
        f"the connector follows another server, or one that was restored: changes of {servers} have lower positions "
        f"than those before, so their order is unknown; {REMEDY}"
    )


def _tables_left_out(manifest: Manifest, orders: Sequence[ServerOrder]) -> Iterator[str]:
    """The tables of connectors that started again: all, if there is no other connector, since a table without changes
    before may have some that were left out."""
    started = {server for order in orders for server in order.restarts.values()}
    if started and all(order.last.keys() <= started for order in orders):
        yield from manifest.tables
    yield from (order.table for order in orders if not started.isdisjoint(order.last))


def _mixed(orders: Sequence[ServerOrder], channels: Collection[str]) -> Iterator[tuple[str, str]]:
    """Tables that are those of several databases with one name. ``channels``: those that are read."""
    origins: dict[str, set[str]] = {}
    for order in orders:
        if order.channel in channels:
            origins.setdefault(order.table, set()).update(order.origins)
    for table, found in origins.items():
        if len(found) > 1:
            what = f"its changes come from several databases ({origins_text(found)}), whose rows the copy would mix"
            yield table, f"{what}: {ONE_ORIGIN}"
