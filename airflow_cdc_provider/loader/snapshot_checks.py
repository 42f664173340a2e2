"""Checks of `snapshot` that no field can make for itself."""

from __future__ import annotations

from collections.abc import Callable

from airflow_cdc_provider.core.spec.definition import Source, TableRule
from airflow_cdc_provider.core.spec.selected_columns import selects
from airflow_cdc_provider.core.spec.slices import Slices
from airflow_cdc_provider.core.spec.snapshot import SnapshotDefaults
from airflow_cdc_provider.loader.builder import Builder
from airflow_cdc_provider.loader.locations import finder
from airflow_cdc_provider.loader.report import YamlLocation, shown
from airflow_cdc_provider.loader.types import HOLDS_COPIES, options_class


def check_snapshots(builder: Builder) -> None:
    defaults = builder.built.get(("snapshot",), SnapshotDefaults())
    for path, rule in list(builder.built.items()):
        if isinstance(rule, TableRule):
            _check_rule(builder, finder(builder, path), rule, defaults)
    _check_feed(builder)


def _check_rule(builder: Builder, at: Callable[..., YamlLocation], rule: TableRule, defaults: SnapshotDefaults) -> None:
    snapshot = rule.snapshot.over(defaults)
    if snapshot.where and not snapshot.extent.rows:
        builder.report.problem(
            "DEF090",
            "conditions for the rows of a copy that reads no rows",
            at("snapshot", "where"),
            found=f"`mode: {snapshot.mode}`",
            allowed="one of `where` and such a mode",
            do="remove one of them",
        )
    named: list[tuple[str, tuple[str | int, ...]]] = [
        (condition.column, ("where", index, "column")) for index, condition in enumerate(snapshot.where)
    ]
    named += [(snapshot.slices.column, ("slices", "column"))] if snapshot.slices.column else []
    if snapshot.slices != Slices() and not snapshot.slices.column:
        builder.report.problem(
            "DEF095",
            "slices without a column",
            at("snapshot", "slices"),
            found=f"`every: {snapshot.slices.every}`",
            allowed="`column` with the name of a date or time",
            do="add `column`, or remove `slices`",
        )
    for column, path in named:
        if not selects(rule, column):
            builder.report.problem(
                "DEF021",
                f"`snapshot.{path[0]}` column {shown(column)} is omitted by `columns`",
                at("snapshot", *path),
                found=shown(column),
                do="include the column, or use another one",
            )


def _check_feed(builder: Builder) -> None:
    """The first copy of a feed's table is in the feed."""
    source = builder.built.get(("source",))
    if not isinstance(source, Source) or not getattr(options_class("sources", source.type), HOLDS_COPIES, False):
        return
    for path in [path for path in builder.locations if path[-1:] == ("snapshot",) and len(path) in (1, 3)]:
        builder.report.problem(
            "DEF093",
            f"a {source.type} source contains its tables from their first row on, so nothing is copied",
            finder(builder, path[:-1])("snapshot"),
            found="`snapshot`",
            allowed="sources whose tables are read",
            do="remove `snapshot`; what the feed contains is decided by the connector that writes it",
        )
