"""What `verify` of a definition cannot do with its source."""

from __future__ import annotations

from airflow_cdc_provider.connectors.source import SourceConnector
from airflow_cdc_provider.connectors.source_features import HoldsSnapshots, StreamHoldsSnapshots
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.spec.verification import OnDifference


def verification_problems(definition: Definition, source: SourceConnector) -> list[Problem]:
    verify, found = definition.verify, f"source type {definition.source.type}"
    if verify.every is None:
        return []
    if isinstance(source, StreamHoldsSnapshots):
        return [
            Problem(
                "VER004",
                "copies of this source cannot be compared: it delivers changes only, no rows",
                where=f"{definition.name}, verify.every",
                found=found,
                do="remove `verify`, and compare the target with the database that the events come from",
            )
        ]
    exact = source.exact_snapshot or isinstance(source, HoldsSnapshots)
    if verify.repair is not OnDifference.OFF and not exact:
        return [
            Problem(
                "VER005",
                "rows that differ cannot be repaired: the source does not show at which position it was read",
                where=f"{definition.name}, verify.repair",
                found=f"repair: {verify.repair}, {found}",
                allowed="repair: off",
                do=f"set `repair: off`, and copy a table that differs again: airflow cdc resync {definition.name}",
            )
        ]
    return []
