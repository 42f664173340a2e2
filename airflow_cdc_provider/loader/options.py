"""Loads options of a type that are given as single names and values."""

from __future__ import annotations

from collections import abc
from typing import Any

from airflow_cdc_provider.core.errors import DefinitionInvalid
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.loader.builder import Builder, Unusable
from airflow_cdc_provider.loader.report import Report
from airflow_cdc_provider.loader.types import options_class
from airflow_cdc_provider.loader.yaml_tree import EMPTY, Broken, Mapping, Node, Scalar, Sequence, read_tree


class Unquoted(str):
    """A scalar that is no text, as the YAML spells it: ``010`` and ``2024-01-01`` stay what they are, and are read by
    the loader alone."""


def parse_value(text: str) -> Any:
    """A value in YAML notation: texts, lists and mappings of them, and ``Unquoted`` scalars. Raises ValueError."""
    report = Report("")
    tree = read_tree(text.encode(), report) if text.strip() else None
    problems = [problem for problem in report.problems if problem.code != EMPTY]
    if problems or (text.strip() and tree is None and not report.problems):
        raise ValueError("not YAML")
    return Unquoted("null") if tree is None else _value(tree)


def _value(node: Node) -> Any:
    match node:
        case Sequence():
            return [_value(item) for item in node.items]
        case Mapping():
            return {key.text: _value(value) for key, value in node.entries}
        case Scalar():
            return node.text if node.kind == "str" else Unquoted(node.text)
        case Broken():
            raise ValueError("not YAML")


def load_options(registry: str, kind: str, given: abc.Sequence[tuple[str, str]], where: str) -> dict[str, Any]:
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
