"""Settings of a table that a history does not go with."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from airflow_cdc_provider.core.spec.definition import OnDelete, Source, TableRule
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.spec.routing import has_placeholders
from airflow_cdc_provider.core.spec.selection import is_pattern
from airflow_cdc_provider.loader.builder import Builder, Path
from airflow_cdc_provider.loader.locations import finder
from airflow_cdc_provider.loader.report import Report, YamlLocation, shown
from airflow_cdc_provider.loader.types import HAS_EACH_CHANGE, options_class


def check_history(rule: TableRule, at: Callable[..., YamlLocation], report: Report) -> None:
    if rule.history_target and rule.history is History.NONE:
        report.problem(
            "DEF083",
            "the target of a history, and no history",
            at("history_target"),
            found=shown(rule.history_target),
            do="add `history: scd2` or `history: log`, or remove `history_target`",
        )
    if is_pattern(rule.source) and rule.history_target and not has_placeholders(rule.history_target):
        report.problem(
            "DEF049",
            "a pattern has a single target name",
            at("history_target"),
            found=shown(rule.source),
            do="add placeholders, as in `{table}_history`",
        )
    beside = bool(rule.history_target)
    if rule.history is not History.NONE and rule.on_delete is OnDelete.SOFT and not beside:
        report.problem(
            "DEF082",
            "deleted rows are marked, and a history has them anyway",
            at("on_delete"),
            found=f"`on_delete: soft`, `history: {rule.history}`",
            allowed="`on_delete: hard` or `ignore`",
            do="remove `on_delete`: a version ends when its row is deleted, and a log contains the delete",
        )


def check_logs(rules: Mapping[Path, TableRule], builder: Builder) -> None:
    """A log has what the source delivers: a row that a poll reads again would be in it again."""
    source = builder.built.get(("source",))
    if not isinstance(source, Source) or getattr(options_class("sources", source.type), HAS_EACH_CHANGE, True):
        return
    for path, rule in rules.items():
        if rule.history is History.LOG:
            builder.report.problem(
                "DEF081",
                f"a {source.type} source delivers rows, some of them again, and no changes that a log could have once",
                finder(builder, path)("history"),
                found="`history: log`",
                allowed="`history: scd2`, `history: none`",
                do="use `history: scd2`: a row that is read again as it was makes no version",
            )
