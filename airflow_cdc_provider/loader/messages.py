"""Descriptions of found and expected values for error messages."""

from __future__ import annotations

from collections.abc import Mapping as Map
from dataclasses import is_dataclass
from datetime import timedelta
from typing import Any

import yaml

from airflow_cdc_provider.loader.report import shown
from airflow_cdc_provider.loader.yaml_tree import Broken, Mapping, Node, Scalar, Sequence

EXPECTED: Map[Any, tuple[str, str]] = {
    str: ("text", "text"),
    int: ("a whole number", "a decimal number without point, such as 4"),
    float: ("a number", "a decimal number, such as 0.2"),
    bool: ("true or false", "true, false"),
    timedelta: ("a duration", "a positive whole number with a unit, s, m, h or d, at most 3650d: `10m`, `7d`"),
    tuple: ("a list", "a list, such as [a, b]"),
    dict: ("a mapping", "`key: value` pairs"),
}
KINDS = {"int": "number", "float": "number", "bool": "boolean", "timestamp": "date"}


def describe_expected(kind: Any) -> tuple[str, str]:
    """A name of the expected type, and its notation."""
    if is_dataclass(kind):
        return "a mapping", "`key: value` pairs"
    return EXPECTED[kind]


def describe_found(node: Node) -> str:
    """A description of a node. If YAML reads the text as another value, the description has both."""
    match node:
        case Mapping():
            return "a mapping"
        case Sequence():
            return "a list"
        case Broken():
            return "nothing usable"
        case Scalar(kind="null"):
            return "nothing"
        case Scalar(kind="str"):
            return f"text {shown(node.text)}"
        case Scalar():
            value = shown(str(yaml_value(node)))[1:-1]
            text = "" if value == node.text else f", written as {shown(node.text)}"
            return f"{KINDS.get(node.kind, node.kind)} {value.lower() if node.kind == 'bool' else value}{text}"


def suggest_fix(kind: Any, node: Node) -> str:
    if kind is str and isinstance(node, Scalar) and node.kind != "null":
        return "quote it"
    if kind is tuple and isinstance(node, Scalar) and node.kind == "str":
        return f"write [{node.text}]" if len(node.text) <= 40 and node.text.isidentifier() else "write a list"
    return ""


def yaml_value(node: Scalar) -> Any:
    """The value in YAML 1.1, which may be unexpected: 13 for ``0015``, false for ``no``, 1342 for ``22:22``."""
    try:
        return yaml.load(node.text, Loader=yaml.CSafeLoader)
    except ValueError:
        return node.text
