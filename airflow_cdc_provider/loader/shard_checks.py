"""Settings of tables that share a target table."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from airflow_cdc_provider.core.spec.definition import TableRule, Target
from airflow_cdc_provider.loader.builder import Builder, Path
from airflow_cdc_provider.loader.locations import finder
from airflow_cdc_provider.loader.report import Report, YamlLocation, shown
from airflow_cdc_provider.loader.types import known_kinds, options_class

HOLDS_SHARDS = "holds_shards"
"""Attribute of the options of a target: several copies can be in one of its tables."""


def check_shard(rule: TableRule, at: Callable[..., YamlLocation], report: Report) -> None:
    if rule.shard_value and not rule.shard_column:
        report.problem(
            "DEF088",
            "the value of a shard, and no column for it",
            at("shard_value"),
            found=shown(rule.shard_value),
            do="add `shard_column`, or remove `shard_value`",
        )


def check_shards(rules: Mapping[Path, TableRule], builder: Builder) -> None:
    targets = [target for target in builder.built.values() if isinstance(target, Target)]
    for path, rule in rules.items():
        chosen = (one for one in targets if rule.has_copy_in(one.name))
        target = next((one for one in chosen if not holds_shards(one.type)), None)
        if rule.shard_column and target:
            builder.report.problem(
                "DEF089",
                f"a table of a target of type {target.type} has one source table",
                finder(builder, path)("shard_column"),
                found=shown(rule.shard_column),
                allowed="target types whose tables can have several: " + ", ".join(_types_with_shared_tables()),
                do="remove `shard_column` and give each source table its own `target`; a view can combine them",
            )


def holds_shards(target_type: str) -> bool:
    return bool(getattr(options_class("targets", target_type), HOLDS_SHARDS, False))


def _types_with_shared_tables() -> list[str]:
    return [kind for kind in known_kinds("targets") if holds_shards(kind)]
