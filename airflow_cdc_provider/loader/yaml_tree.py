"""Parses YAML text to a tree of nodes with their locations.

The tree is built from the parser's events, so that nothing is expanded, constructed or imported: tags, anchors,
aliases, further documents and deep nesting are reported as problems.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import yaml

from airflow_cdc_provider.loader.report import SECRET_KEY, SECRET_VALUE, Report, YamlLocation, path_text, shown

MAX_BYTES = 256 * 1024
MAX_DEPTH = 20
START = YamlLocation(1, 1)
EXPONENT = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+")
"""A number in most languages, but not in YAML 1.1, which requires a dot and a sign."""


@dataclass(frozen=True)
class Scalar:
    """``kind``: the type of the text in YAML 1.1: str, int, float, bool, null, timestamp … Quoted text is str."""

    text: str
    kind: str
    at: YamlLocation


@dataclass(frozen=True)
class Sequence:
    items: tuple[Node, ...]
    at: YamlLocation


@dataclass(frozen=True)
class Mapping:
    entries: tuple[tuple[Scalar, Node], ...]
    at: YamlLocation


@dataclass(frozen=True)
class Broken:
    """A node with a problem that is reported already."""

    at: YamlLocation


EMPTY = "DEF001"
Node = Scalar | Sequence | Mapping | Broken


def read_tree(data: bytes, report: Report) -> Node | None:
    """The single document in ``data``. None if the text as a whole is unusable, with the reason in ``report``."""
    text = _decode(data, report)
    if text is None:
        return None
    reader = None
    try:
        reader = _Reader(yaml.CSafeLoader(text), report)
        return reader.document()
    except yaml.YAMLError as error:
        _syntax(error, text, report, reader.path if reader else "")
    except _TooDeep as error:
        report.problem("DEF007", "the file is nested too deeply", error.at, allowed=f"{MAX_DEPTH} levels")
    return None


def _decode(data: bytes, report: Report) -> str | None:
    if len(data) > MAX_BYTES:
        report.problem("DEF007", "the file is too large", START, found=f"{len(data)} bytes", allowed=f"{MAX_BYTES}")
        return None
    try:
        text = data.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        report.problem(
            "DEF008", f"not UTF-8 at byte {error.start}", _location(data, error.start), do="save it as UTF-8"
        )
        return None
    if "\0" in text:
        at = data.index(b"\0")
        report.problem("DEF008", f"a NUL character at byte {at}", _location(data, at), do="save it as UTF-8 text")
        return None
    return text


def _location(data: bytes, offset: int) -> YamlLocation:
    before = data[:offset]
    return YamlLocation(before.count(b"\n") + 1, offset - (before.rfind(b"\n") + 1) + 1)


def _syntax(error: yaml.YAMLError, text: str, report: Report, path: str) -> None:
    """``path``: the last key that was read."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        offset = int(getattr(error, "position", 0))
        at, reason = _location(text.encode(), len(text[:offset].encode())), str(getattr(error, "reason", error))
    else:
        at, reason = YamlLocation(mark.line + 1, mark.column + 1), str(getattr(error, "problem", error))
    report.problem(
        "DEF002", f"invalid YAML: {reason}", at._replace(path=path), found=_line(text, at), do=_suggest_fix(text, at)
    )


def _line(text: str, at: YamlLocation) -> str:
    """The line with a caret at the column; not shown if it may contain a secret."""
    lines = text.splitlines()
    line = lines[at.line - 1] if at.line <= len(lines) else ""
    if SECRET_KEY.search(line) or SECRET_VALUE.search(line):
        return "a line that may contain a secret, not shown"
    return (
        f"\n  {line[:120]}\n  {' ' * (at.column - 1)}^" if line.strip() and at.column <= 120 else "the end of the text"
    )


def _suggest_fix(text: str, at: YamlLocation) -> str:
    lines = text.splitlines()
    line = lines[at.line - 1] if at.line <= len(lines) else ""
    if "\t" in line:
        return "indent with spaces, not tabs"
    if line.lstrip().startswith(("*", "- *")) or ": *" in line:
        return "quote text that starts with *"
    return ""


class _TooDeep(Exception):
    def __init__(self, at: YamlLocation) -> None:
        super().__init__(at)
        self.at = at


class _Reader:
    def __init__(self, loader: Any, report: Report) -> None:
        self.path = ""
        self._loader = loader
        self._report = report
        self._events: Iterator[Any] = iter(loader.get_event, None)

    def document(self) -> Node | None:
        next(self._events)
        first = next(self._events)
        if isinstance(first, yaml.StreamEndEvent):
            self._empty(START)
            return None
        root = self._node(next(self._events), 1)
        next(self._events)
        following = next(self._events)
        if not isinstance(following, yaml.StreamEndEvent):
            more = 1 + sum(isinstance(event, yaml.DocumentStartEvent) for event in self._events)
            at = _start(following)
            self._report.problem(
                "DEF003",
                "more than one document in a file",
                at,
                found=f"{1 + more}, the second at line {at.line}",
                allowed="one replicator per file",
            )
            return None
        if isinstance(root, Scalar) and root.kind == "null":
            self._empty(root.at)
            return None
        return root

    def _empty(self, at: YamlLocation) -> None:
        self._report.problem(EMPTY, "the file is empty", at, allowed="a mapping with `name`, `source`, `target` …")

    def _node(self, event: Any, depth: int, path: str = "") -> Node:
        at, self.path = _start(event)._replace(path=path), path
        if depth > MAX_DEPTH:
            raise _TooDeep(at)
        usable = self._usable(event, at) and not (isinstance(event, yaml.ScalarEvent) and self._secret(event, at))
        node: Node
        match event:
            case yaml.ScalarEvent():
                node = Scalar(event.value, self._kind(event), at)
            case yaml.SequenceStartEvent():
                node = Sequence(tuple(self._items(at, depth)), at)
            case yaml.MappingStartEvent():
                node = self._mapping(at, depth)
            case _:
                return Broken(at)
        return node if usable else Broken(at)

    def _items(self, at: YamlLocation, depth: int) -> Iterator[Node]:
        for index, event in enumerate(self._events):
            if isinstance(event, yaml.SequenceEndEvent):
                return
            yield self._node(event, depth + 1, path_text(at.path, index))

    def _mapping(self, at: YamlLocation, depth: int) -> Mapping:
        entries: dict[str, tuple[Scalar, Node]] = {}
        for event in self._events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key = self._node(event, depth + 1, at.path)
            if isinstance(key, Scalar):
                key = replace(key, at=key.at.below(key.text))
            value = self._node(next(self._events), depth + 1, key.at.path)
            if not isinstance(key, Scalar):
                self._report.problem("DEF018", "a key must be text", key.at)
            elif key.text in entries:
                first = entries[key.text][0].at.line
                self._report.problem(
                    "DEF004", f"duplicate key {shown(key.text)} at lines {first} and {key.at.line}", key.at,
                    do="keep one of them",
                )  # fmt: skip
            else:
                entries[key.text] = (key, value)
        return Mapping(tuple(entries.values()), at)

    def _kind(self, event: Any) -> str:
        tag: str = self._loader.resolve(yaml.ScalarNode, event.value, event.implicit)
        kind = tag.rpartition(":")[2]
        if kind in ("value", "merge"):
            return "str"
        plain = event.implicit[0]
        return "float" if kind == "str" and plain and EXPONENT.fullmatch(event.value) else kind

    def _usable(self, event: Any, at: YamlLocation) -> bool:
        if isinstance(event, yaml.AliasEvent) or event.anchor:
            self._report.problem(
                "DEF006",
                "anchors and aliases are not allowed",
                at,
                found=shown(("*" if isinstance(event, yaml.AliasEvent) else "&") + event.anchor),
                do="write the value out; text that starts with & or * needs quotes",
            )
            return False
        if event.tag:
            self._report.problem(
                "DEF005",
                "tags are not allowed",
                at,
                found=shown(event.tag),
                do="remove the tag; text that starts with ! needs quotes",
            )
            return False
        return True

    def _secret(self, event: Any, at: YamlLocation) -> bool:
        """Whether a scalar may contain a secret, which is reported. Also warns of templates."""
        if "{{" in event.value or "{%" in event.value:
            self._report.warning(
                "DEFW01", "templates are not rendered here; used as plain text", at, found=shown(event.value)
            )
        if not SECRET_VALUE.search(event.value):
            return False
        self._report.problem(
            "DEF029",
            "secrets are not allowed here",
            at,
            found=shown(event.value),
            do="put it into an Airflow connection",
        )
        return True


def _start(event: Any) -> YamlLocation:
    return YamlLocation(event.start_mark.line + 1, event.start_mark.column + 1)
