"""A window in which the changes of a table come from another server, with lower positions: a hole of the table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from airflow_cdc_provider.core.log.change_log import EXPIRED, Hole, Manifest
from airflow_cdc_provider.core.log.server_orders import ServerOrder, join_orders


def known_orders(previous: Manifest) -> tuple[ServerOrder, ...]:
    """Without those of tables that have a hole there: they are copied again."""
    with_hole = {hole.table for hole in previous.holes}
    return tuple(order for order in previous.orders if order.table not in with_hole)


def with_orders(manifest: Manifest, known: Iterable[ServerOrder], seen: Iterable[ServerOrder]) -> Manifest:
    """``known``: those of the windows before; ``seen``: those of this window."""
    orders = tuple(join_orders(known, seen))
    back = {order.table: order for order in orders if order.back and order.table in manifest.tables}
    holes = [_hole(order, manifest) for _, order in sorted(back.items())]
    return replace(manifest, orders=orders, holes=(*manifest.holes, *holes))


def _hole(order: ServerOrder, manifest: Manifest) -> Hole:
    servers = ", ".join(sorted(order.back))
    detail = (
        f"the connector follows another server: changes of {servers} have lower positions than those before, so their "
        "order is unknown; let the connector copy its tables into new topics or a new folder"
    )
    return Hole(EXPIRED, order.table, "", position=manifest.hi, detail=detail)
