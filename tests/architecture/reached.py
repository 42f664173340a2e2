"""Which problems a method of a class can report: those in the functions that it names, and in those that they name. A
name of an attribute stands for the method of the same class if it is one of ``self``; else for every method of that
name in the folders of the class and its bases, but for those of the class itself."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]

CODE = re.compile(r"[A-Z]{3}\d{3}")
PACKAGE = "airflow_cdc_provider"
BEGINS = ("__init__", "__enter__", "__post_init__")


@dataclass(frozen=True)
class Definition:
    """``name``: as in its module, or in its class. ``owner``: the class of a method."""

    module: str
    name: str
    node: ast.AST
    owner: str = ""


@dataclass(frozen=True)
class Fact:
    """Something that a problem with this code is about. ``place``: the function that makes it, or the key of a table of
    codes."""

    code: str
    place: str


def methods_of(module: str, name: str) -> dict[str, Definition]:
    """Of a class, with those that it inherits."""
    found: dict[str, Definition] = {}
    for owner, definition in _lineage(module, name):
        for part in definition.body:
            if isinstance(part, ast.FunctionDef):
                found.setdefault(part.name, Definition(owner, part.name, part, definition.name))
    return found


def reached_facts(module: str, name: str, entries: Iterable[Definition], without: Sequence[str] = ()) -> set[Fact]:
    """``module``, ``name``: of the class of the entries. ``without``: methods that are not followed."""
    others, own = _methods_by_name(module, name), methods_of(module, name)
    classes = {(owner, definition.name) for owner, definition in _lineage(module, name)}
    ahead, seen, facts = [*entries], set[int](), set[Fact]()
    while ahead:
        definition = ahead.pop()
        if id(definition.node) in seen:
            continue
        seen.add(id(definition.node))
        facts |= set(_facts(definition))
        is_own = (definition.module, definition.owner) in classes
        siblings = own if is_own else methods_of(definition.module, definition.owner) if definition.owner else {}
        for node in ast.walk(definition.node):
            match node:
                case ast.Name(id=used):
                    ahead += _resolved(definition.module, used)
                case ast.Attribute(value=ast.Name(id="self"), attr=used) if used not in without:
                    ahead += [siblings[used]] if used in siblings else []
                case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=used):
                    ahead += _inherited(definition, used)
                case ast.Attribute(attr=used) if used not in without:
                    ahead += others.get(used, [])
    return facts


def _facts(definition: Definition) -> Iterator[Fact]:
    """A code in a table of codes counts with its key. A set of codes makes no problem."""
    keyed, sorted_out = dict[int, str](), set[int]()
    for node in ast.walk(definition.node):
        match node:
            case ast.Set():
                sorted_out |= set(map(id, ast.walk(node)))
            case ast.Dict():
                for key, value in zip(node.keys, node.values, strict=True):
                    if isinstance(key, ast.Constant):
                        keyed |= {id(part): str(key.value) for part in ast.walk(value)}
    for node in ast.walk(definition.node):
        match node:
            case ast.Constant(value=str(text)) if CODE.fullmatch(text) and id(node) not in sorted_out:
                yield Fact(text, keyed.get(id(node), definition.name))


def _inherited(definition: Definition, name: str) -> list[Definition]:
    """Of the bases of the method's class."""
    found = []
    for owner, base in list(_lineage(definition.module, definition.owner))[1:]:
        found += [Definition(owner, name, part, base.name) for part in base.body if _is_method(part, name)]
    return found[:1]


def _is_method(part: ast.AST, name: str) -> bool:
    return isinstance(part, ast.FunctionDef) and part.name == name


@cache
def _methods_by_name(module: str, name: str) -> Mapping[str, list[Definition]]:
    """Of other classes."""
    own = {(owner, definition.name) for owner, definition in _lineage(module, name)}
    folders = {_file(owner).parent for owner, _ in _lineage(module, name)}
    found = defaultdict[str, list[Definition]](list)
    for folder in folders - {ROOT / PACKAGE / "connectors", ROOT / PACKAGE / "targets"}:
        for file in folder.rglob("*.py"):
            owner = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            for definition in _tree(owner).body:
                if isinstance(definition, ast.ClassDef) and (owner, definition.name) not in own:
                    for part in definition.body:
                        if isinstance(part, ast.FunctionDef):
                            found[part.name].append(Definition(owner, part.name, part, definition.name))
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
        return [Definition(owner, f"{name}.{part.name}", part, name) for part in begins]
    return [Definition(owner, name, definition)] if definition is not None else []


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
