"""The name of a target table. Pure.

``{table}`` is the last part of the source table's name, ``{schema}`` the one before it, ``{database}`` the first of
three.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.placeholders import PLACEHOLDER
from airflow_cdc_provider.core.table.source_names import parts_of

PLACEHOLDERS = ("table", "schema", "database")
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")
NAME_FORMAT = "a letter, then letters, digits and `_`, at most 100"


def has_placeholders(target: str) -> bool:
    return PLACEHOLDER.search(target) is not None


def target_name(rule: TableRule, table: str, default: str) -> tuple[str, list[Problem]]:
    """The target's name for a source table, and why it has none. ``default``: the name that the target derives."""
    if not rule.target:
        return default, []
    if not has_placeholders(rule.target):
        return rule.target, []
    parts = name_parts(table)
    if problem := missing_part("target", rule.target, table):
        return "", [problem]
    name = PLACEHOLDER.sub(lambda match: re.sub(r"\W", "_", parts[match[1]], flags=re.ASCII), rule.target)
    return (name, []) if NAME.fullmatch(name) else ("", [_no_name(rule.target, table, name)])


def name_parts(table: str) -> Mapping[str, str]:
    """The parts of a source table's name, as far as it has them."""
    return dict(zip(PLACEHOLDERS, reversed(parts_of(table)), strict=False))


def missing_part(key: str, pattern: str, table: str) -> Problem | None:
    """Why a pattern, the value of ``key``, has no text for a source table: its name lacks a part."""
    parts = name_parts(table)
    name = next((name for name in PLACEHOLDER.findall(pattern) if name not in parts), None)
    if name is None:
        return None
    return Problem(
        "DEF061",
        f"`{key}: {pattern}` needs the {name} of {table}, whose name has none",
        where=table,
        found=f"{{{name}}}",
        allowed=", ".join(f"{{{part}}}" for part in parts),
        do=f"remove the placeholder, or set a `{key}` for this table",
    )


def _no_name(target: str, table: str, name: str) -> Problem:
    return Problem(
        "DEF062",
        f"`target: {target}` makes an invalid name of {table}",
        where=table,
        found=name[:200],
        allowed=NAME_FORMAT,
        do="put a letter first, shorten the name, or set a `target` for this table",
    )
