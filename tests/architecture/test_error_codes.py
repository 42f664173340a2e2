"""One code, one meaning: two targets that raise the same code describe the same problem."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import airflow_cdc_provider

TARGETS = Path(airflow_cdc_provider.__file__).parent / "targets"
CODE = re.compile(r"[A-Z]{3}\d{3}")

SHARED = {
    "TGT001": "the target has no location that it can use",
    "TGT010": "the table cannot be read",
    "TGT018": "the table has a format in which it cannot be fenced",
    "TGT024": "the table cannot be restored",
    "TGT051": "the database changes or confuses texts",
    "TGT052": "what is to contain the tables does not exist",
    "TGT058": "the table or its key has too many columns",
}
"""Codes whose text names the thing concerned, and what they have in common."""


def raised(file: Path) -> Iterator[tuple[str, str]]:
    """Each code with the constant text behind it."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        for code, text in zip(node.args, node.args[1:], strict=False):
            match code, text:
                case ast.Constant(str(name)), ast.Constant(str(what)) if CODE.fullmatch(name):
                    yield name, what
                case ast.Constant(str(name)), _ if CODE.fullmatch(name):
                    yield name, ast.unparse(text)


def test_a_code_has_one_meaning_in_all_targets() -> None:
    texts = defaultdict[str, set[str]](set)
    targets = defaultdict[str, set[str]](set)
    for file in TARGETS.rglob("*.py"):
        for code, what in raised(file):
            texts[code].add(what)
            targets[code].add(file.relative_to(TARGETS).parts[0])
    assert len(texts) > 50, "the codes were not found"
    found = {code: texts[code] for code in texts if len(texts[code]) > 1 and len(targets[code]) > 1}
    assert found.keys() == SHARED.keys(), found
