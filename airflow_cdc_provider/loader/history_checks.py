"""Settings of a table that a history does not go with."""

from __future__ import annotations

from collections.abc import Callable

from airflow_cdc_provider.core.spec.definition import OnDelete, TableRule
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.loader.report import Report, YamlLocation


def check_history(rule: TableRule, at: Callable[..., YamlLocation], report: Report) -> None:
    if rule.history is not History.NONE and rule.on_delete is OnDelete.SOFT:
        report.problem(
            "DEF082",
            "deleted rows are marked, and a history has them anyway",
            at("on_delete"),
            found=f"`on_delete: soft`, `history: {rule.history}`",
            allowed="`on_delete: hard` or `ignore`",
            do="remove `on_delete`: a version ends when its row is deleted, and a log contains the delete",
        )
