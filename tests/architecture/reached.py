"""Which error codes a method can raise: those in the functions that it names, and in those that they name. A name of an
attribute stands for every method of that name in the folders of the class and its bases."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]

CODE = re.compile(r"[A-Z]{3}\d{3}")
PACKAGE = "airflow_cdc_provider"
BEGINS = ("__init__", "__enter__", "__post_init__")

Definition = tuple[str, ast.AST]
"""A module and a definition in it."""


def methods_of(module: str, name: str) -> dict[str, Definition]:
    """Of a class, with those that it inherits."""
    found: dict[str, Definition] = {}
    for owner, definition in _lineage(module, name):
        for part in definition.body:
            if isinstance(part, ast.FunctionDef):
                found.setdefault(part.name, (owner, part))
    return found


def reached_codes(module: str, name: str, entries: Iterable[Definition], without: Sequence[str] = ()) -> set[str]:
    """``module``, ``name``: of the class of the entries. ``without``: methods that are not followed."""
    named = _methods_by_name(module, name)
    ahead, seen, codes = [*entries], set[int](), set[str]()
    while ahead:
        owner, definition = ahead.pop()
        if id(definition) in seen:
            continue
        seen.add(id(definition))
        for node in ast.walk(definition):
            match node:
                case ast.Constant(value=str(text)) if CODE.fullmatch(text):
                    codes.add(text)
                case ast.Name(id=used):
                    ahead += _resolved(owner, used)
                case ast.Attribute(attr=used) if used not in without:
                    ahead += named.get(used, [])
    return codes


def _methods_by_name(module: str, name: str) -> Mapping[str, list[Definition]]:
    folders = {_file(owner).parent for owner, _ in _lineage(module, name)}
    found = defaultdict[str, list[Definition]](list)
    for folder in folders - {ROOT / PACKAGE / "connectors", ROOT / PACKAGE / "targets"}:
        for file in folder.rglob("*.py"):
            owner = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            for definition in _tree(owner).body:
                for part in definition.body if isinstance(definition, ast.ClassDef) else ():
                    if isinstance(part, ast.FunctionDef):
                        found[part.name].append((owner, part))
    return found


def _lineage(module: str, name: str) -> Iterator[tuple[str, ast.ClassDef]]:
    definition = _definitions(module).get(name)
    assert isinstance(definition, ast.ClassDef), (module, name)
    yield module, definition
    for base in definition.bases:
        owner, parent = _imports(module).get(ast.unparse(base), (module, ast.unparse(base)))
        if isinstance(_definitions(owner).get(parent), ast.ClassDef):
            yield from _lineage(owner, parent)


def _resolved(module: str, name: str) -> list[Definition]:
    owner, name = _imports(module).get(name, (module, name))
    definition = _definitions(owner).get(name)
    if isinstance(definition, ast.ClassDef):
        begins = (part for part in definition.body if isinstance(part, ast.FunctionDef) and part.name in BEGINS)
        return [(owner, part) for part in begins]
    return [(owner, definition)] if definition is not None else []


def _file(module: str) -> Path:
    file = ROOT / f"{module.replace('.', '/')}.py"
    return file if file.exists() else ROOT / module.replace(".", "/") / "__init__.py"


@cache
def _tree(module: str) -> ast.Module:
    file = _file(module)
    return ast.parse(file.read_text(encoding="utf-8") if file.exists() else "")


@cache
def _imports(module: str) -> Mapping[str, tuple[str, str]]:
    """Name → module and name of what is imported under it."""
    return {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(_tree(module))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(PACKAGE)
        for alias in node.names
    }


@cache
def _definitions(module: str) -> Mapping[str, ast.AST]:
    found: dict[str, ast.AST] = {}
    for node in _tree(module).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found[name] = node
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found[name] = node
    return found
