"""The copies of a source table. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from airflow_cdc_provider.core.spec.definition import OnDelete, TableRule
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.table.copies import copy_name, history_name


def copies_of(rule: TableRule, table: str, targets: Sequence[str]) -> Iterator[tuple[str, TableRule]]:
    """The name and the rule of each copy. ``targets``: the names of the targets of the replicator. A history takes the
    place of the copy, or is beside it. Rows that the copy marks as deleted are ended versions in the history."""
    for target in targets:
        if not rule.has_copy_in(target):
            continue
        copy = copy_name(table, target)
        if rule.history is History.NONE or not rule.history_target:
            yield copy, rule
            continue
        yield copy, replace(rule, history=History.NONE, history_target="")
        on_delete = OnDelete.HARD if rule.on_delete is OnDelete.SOFT else rule.on_delete
        yield history_name(copy), replace(rule, target=rule.history_target, history_target="", on_delete=on_delete)


def rule_of_copy(rule: TableRule, table: str, targets: Sequence[str], copy: str) -> TableRule | None:
    """``rule``: of the source table. None if that has no such copy."""
    return dict(copies_of(rule, table, targets)).get(copy)
