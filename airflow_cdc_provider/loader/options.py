"""Loads options of a type that are given as single names and values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from airflow_cdc_provider.core.errors import DefinitionInvalid
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.loader.builder import Builder, Unusable
from airflow_cdc_provider.loader.report import Report
from airflow_cdc_provider.loader.types import options_class
from airflow_cdc_provider.loader.yaml_tree import Mapping, read_tree


def parse_value(text: str) -> Any:
    """A value in YAML notation. Raises ValueError."""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError("not YAML") from error


def load_options(registry: str, kind: str, given: Sequence[tuple[str, str]], where: str) -> dict[str, Any]:
    """``given``: names and values in YAML notation. ``where``: their origin, for messages. Raises DefinitionInvalid
    with all problems."""
    if not given:
        return {}
    report = Report(where)
    tree = read_tree("\n".join(f"{name}: {value}" for name, value in given).encode(), report)
    try:
        if isinstance(tree, Mapping) and not report.problems:
            options: dict[str, Any] = to_plain(Builder(report).build(options_class(registry, kind), tree))
            return options
    except Unusable:
        pass
    raise DefinitionInvalid(*report.problems)
