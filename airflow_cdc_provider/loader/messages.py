"""How a value that was found, and the kind that was expected, are put into words."""

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


def expected(kind: Any) -> tuple[str, str]:
    """A name for what should stand there, and how it is written."""
    if is_dataclass(kind):
        return "a mapping", "`key: value` pairs"
    return EXPECTED[kind]


def found(node: Node) -> str:
    """What stands there; of a value that YAML reads as something else than its text, both."""
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
            read = shown(str(read_by_yaml(node)))[1:-1]
            written = "" if read == node.text else f", written {shown(node.text)}"
            return f"{KINDS.get(node.kind, node.kind)} {read.lower() if node.kind == 'bool' else read}{written}"


def advice(kind: Any, node: Node) -> str:
    if kind is str and isinstance(node, Scalar) and node.kind != "null":
        return "quote it"
    if kind is tuple and isinstance(node, Scalar) and node.kind == "str":
        return f"write [{node.text}]" if len(node.text) <= 40 and node.text.isidentifier() else "write a list"
    return ""


def read_by_yaml(node: Scalar) -> Any:
    """``0015`` is 13 to YAML 1.1, ``no`` is false, ``22:22`` is 1342: the reader of a message wants to know."""
    try:
        return yaml.load(node.text, Loader=yaml.CSafeLoader)
    except ValueError:
        return node.text
