"""Builds the dataclasses of the definition from a tree of nodes, by their fields.

Invalid parts are reported, and valid parts are still built, so that one run finds all problems of a file.
"""

from __future__ import annotations

import math
import re
import types
import typing
from collections.abc import Mapping as Map
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from functools import cache
from typing import Any, NoReturn

from airflow_cdc_provider.core.nearest import did_you_mean, nearest
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.loader.messages import describe_expected, describe_found, suggest_fix
from airflow_cdc_provider.loader.report import SECRET_KEY, Report, YamlLocation, shown
from airflow_cdc_provider.loader.spark_conf import expected_format, lacks_unit, refusal_reason
from airflow_cdc_provider.loader.text_formats import FORMS, duration
from airflow_cdc_provider.loader.types import known_kinds, options_class
from airflow_cdc_provider.loader.yaml_tree import Broken, Mapping, Node, Scalar, Sequence

Path = tuple[str | int, ...]
Given = dict[str, tuple[Scalar, Node]]
INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
DECIMAL = re.compile(r"[-+]?((0|[1-9][0-9]{0,40})(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
COLUMN_FORMS = frozenset({"cast", "column"})
"""Forms of mappings whose keys are names of columns, of any text."""

NAMES = "names"

NOTHING_MORE: Map[str, Any] = types.MappingProxyType({})


class Unusable(Exception):
    """A part of the tree cannot be built. The reason is in the report."""


@dataclass
class Builder:
    """``built``: the dataclasses that could be built, by path. ``locations``: of all values, by path."""

    report: Report
    built: dict[Path, Any] = field(default_factory=dict)
    locations: dict[Path, YamlLocation] = field(default_factory=dict)

    def build(self, kind: Any, node: Node, path: Path = (), more: Map[str, Any] = NOTHING_MORE) -> Any:
        """``node`` as a ``kind``; ``more`` is the metadata of the field. Raises Unusable after reporting the
        problem."""
        self.locations[path] = node.at
        if isinstance(node, Broken):
            raise Unusable
        if is_dataclass(kind):
            return self._dataclass(kind, node, path, more)
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if origin in (types.UnionType, typing.Union):
            return self._union(arguments, node, path, more)
        if origin is tuple:
            return self._list(arguments[0], node, path, more)
        if origin is dict:
            return self._settings(arguments[1], node, path, more)
        if not isinstance(node, Scalar):
            self._mismatch(kind, node, more)
        return self._scalar(kind, node, more)

    def _dataclass(self, kind: Any, node: Node, path: Path, more: Map[str, Any]) -> Any:
        if not isinstance(node, Mapping):
            self._mismatch(kind, node, more)
        given: Given = {key.text: (key, value) for key, value in node.entries}
        own, inline = _fields(kind)
        values, valid = self._build_members(kind, own, given, path)
        known: dict[str, Field[Any]] = dict(own)
        if inline and "type" in values:
            chosen, options, options_valid = self._build_options(own["type"], values["type"], given, path)
            values[inline] = {name: to_plain(value) for name, value in chosen.items()}
            known |= options
            valid = valid and options_valid
        unknown = [key for text, (key, _) in given.items() if text not in known]
        if inline and not _all_types_known(known, values | values.get(inline, {})):
            unknown = [key for key in unknown if _is_no_option(key, known, given)]
        intended = self._unknown_keys(unknown, known)
        missing = [name for name, f in known.items() if name not in given and _required(f)]
        for name in missing:
            if name not in intended:
                self._missing(name, known[name], node, path)
        if not valid or missing or given.keys() - known:
            raise Unusable
        self.built[path] = kind(**values)
        return self.built[path]

    def _build_options(
        self, type_field: Field[Any], kind: str, given: Given, path: Path
    ) -> tuple[dict[str, Any], dict[str, Field[Any]], bool]:
        """The values of a type's options, the fields of these options, and whether all could be built. An option may be
        a type field itself."""
        options = options_class(type_field.metadata["choices"], kind)
        known, _ = _fields(options)
        known = dict(known)
        values, valid = self._build_members(options, known, given, path)
        for name, field_ in list(known.items()):
            if "choices" in field_.metadata and name in values:
                more, keys, more_valid = self._build_options(field_, values[name], given, path)
                values, known, valid = values | more, known | keys, valid and more_valid
        return values, known, valid

    def _build_members(
        self, kind: Any, known: Map[str, Field[Any]], given: Given, path: Path
    ) -> tuple[dict[str, Any], bool]:
        """The values of the given fields, and whether all of them could be built."""
        values, valid, hints = {}, True, _hints(kind)
        for name in (name for name in known if name in given):
            try:
                values[name] = self.build(hints[name], given[name][1], (*path, name), known[name].metadata)
            except Unusable:
                valid = False
        for name, value in values.items():
            needed = known[name].metadata.get("needs", "")
            if needed and needed not in given and value != known[name].default:
                self._without_effect(name, needed, given[name][0])
        return values, valid

    def _without_effect(self, name: str, needed: str, key: Scalar) -> None:
        self.report.problem(
            "DEF105",
            f"`{name}` has no effect without `{needed}`",
            key.at,
            found=f"no `{needed}`",
            do=f"add `{needed}`, or remove `{name}`",
        )

    def _unknown_keys(self, unknown: list[Scalar], known: Map[str, Field[Any]]) -> set[str]:
        """Report unknown keys. Returns the known keys that are probably intended, which are not reported as missing."""
        for key in unknown:
            if not self._secret_key(key):
                self.report.problem(
                    "DEF010",
                    f"unknown key {shown(key.text)}",
                    key.at,
                    found=shown(key.text),
                    allowed=", ".join(sorted(known)),
                    do=did_you_mean(key.text, known),
                )
        return {nearest(key.text, known) for key in unknown}

    def _missing(self, name: str, member: Field[Any], node: Node, path: Path) -> None:
        owner = f" of `{path[-1]}`" if path and isinstance(path[-1], str) else ""
        self.report.problem(
            "DEF011",
            f"required key `{name}`{owner} is missing",
            node.at.below(name),
            do=str(member.metadata.get("doc", "")),
        )

    def _secret_key(self, key: Scalar) -> bool:
        if not SECRET_KEY.search(key.text):
            return False
        self.report.problem(
            "DEF029",
            "secrets are not allowed here",
            key.at,
            found=f"key {shown(key.text)}; its value is not shown",
            do="put it into an Airflow connection",
        )
        return True

    def _union(self, members: tuple[Any, ...], node: Node, path: Path, more: Map[str, Any]) -> Any:
        if mapping := next(filter(is_dataclass, members), None):  # absent, or a mapping, and never null
            return self._dataclass(mapping, node, path, more)
        if isinstance(node, Scalar) and node.kind == "null" and types.NoneType in members:
            return None
        lists = [m for m in members if typing.get_origin(m) is tuple]
        if isinstance(node, Sequence) and lists:
            return self._list(typing.get_args(lists[0])[0], node, path, more)
        if not isinstance(node, Scalar):
            self._mismatch(str, node, more)
        plain = [m for m in members if m is not types.NoneType and m not in lists]
        return self._scalar(plain[0] if len(plain) == 1 else _yaml_type(node), node, more)

    def _list(self, kind: Any, node: Node, path: Path, more: Map[str, Any]) -> tuple[Any, ...]:
        if not isinstance(node, Sequence):
            self._mismatch(tuple, node, more)
        if not node.items and more.get("non_empty"):
            self._refuse(
                "DEF020", "the list is empty", node, allowed="at least one entry", do="add one or remove the key"
            )
        values, valid = [], True
        for index, item in enumerate(node.items):
            try:
                values.append(self.build(kind, item, (*path, index), more))
            except Unusable:
                valid = False
        for index, item in enumerate(node.items):
            if isinstance(item, Scalar) and any(item.text == getattr(i, "text", None) for i in node.items[:index]):
                valid = False
                self.report.problem("DEF045", "listed twice", item.at, found=shown(item.text))
        if not valid:
            raise Unusable
        return tuple(values)

    def _settings(self, kind: Any, node: Node, path: Path, more: Map[str, Any]) -> dict[str, Any]:
        """A mapping of arbitrary keys to texts, or numbers; in texts, numbers and true/false are used as text."""
        if not isinstance(node, Mapping):
            self._mismatch(dict, node, NOTHING_MORE if kind is int or more.get("form") == "column" else more)
        values, valid = {}, True
        for key, value in node.entries:
            self.locations[(*path, key.text)] = key.at
            try:
                values[key.text] = (
                    self.build(int, value, (*path, key.text), more) if kind is int else self._setting(key, value, more)
                )
            except Unusable:
                valid = False
        if not valid:
            raise Unusable
        return values

    def _setting(self, key: Scalar, value: Node, more: Map[str, Any]) -> str:
        form = more.get("form", "")
        are_names = form in COLUMN_FORMS or more.get("keys") == NAMES
        if (not are_names and self._secret_key(key)) or isinstance(value, Broken):
            raise Unusable
        reason = refusal_reason(key.text) if form == "spark" else ""
        if reason:
            self._refuse("DEF030", f"Spark setting {shown(key.text)} is not allowed: {reason}", key)
        if not isinstance(value, Scalar):
            self._mismatch(str, value, NOTHING_MORE)
        text = value.text if _is_unambiguous(value) else str(self._scalar(str, value, NOTHING_MORE))
        if form == "spark" and lacks_unit(key.text, text):
            self._refuse(
                "DEF031", f"{shown(key.text)} requires a unit", value, found=shown(text), allowed="k, m, g or t: `2g`"
            )
        if form in (*COLUMN_FORMS, "message") and (error := FORMS[form].error(text)):
            what = f"{shown(key.text)} cannot be cast to this type" if form == "cast" else error
            self._refuse(FORMS[form].code, what, value, found=shown(text), allowed=FORMS[form].allowed)
        if form == "spark" and (allowed := expected_format(key.text, text)):
            what = f"the value of {shown(key.text)} is not allowed: it might name code"
            self._refuse("DEF030", what, value, found=shown(text), allowed=allowed)
        return text

    def _scalar(self, kind: Any, node: Scalar, more: Map[str, Any]) -> Any:
        if kind is bool:
            return self._boolean(node, more)
        if kind in (int, float):
            return self._number(kind, node, more)
        words = [member.value for member in kind] if issubclass(kind, StrEnum) and node.kind == "bool" else []
        if node.kind != "str" and kind is not timedelta and node.text not in words:  # such as `off`
            self._mismatch(str, node, more)
        if kind is timedelta:
            length = duration(node.text)
            return length if length else self._mismatch(kind, node, more, code="DEF017")
        return self._enum_member(kind, node) if issubclass(kind, StrEnum) else self._text(node, more)

    def _boolean(self, node: Scalar, more: Map[str, Any]) -> bool:
        if node.kind != "bool" or node.text not in ("true", "false"):
            self._mismatch(bool, node, more)
        return node.text == "true"

    def _number(self, kind: Any, node: Scalar, more: Map[str, Any]) -> int | float:
        form = INTEGER if kind is int else DECIMAL
        if node.kind == "float" and node.text.lower().lstrip("+-") in (".inf", ".nan"):
            self._refuse("DEF038", "not a finite number", node, found=shown(node.text))
        if node.kind not in ("int", "float") or not form.fullmatch(node.text):
            self._mismatch(kind, node, more)
        value: int | float = kind(node.text)
        if not math.isfinite(value):
            self._refuse("DEF038", "not a finite number", node, found=shown(node.text))
        if isinstance(value, float) and Decimal(repr(value)) != Decimal(node.text):
            found, allowed = shown(node.text), "at most 17 digits; a text, for a column of decimals"
            self._refuse(
                "DEF106",
                "a number with more digits than are kept",
                node,
                found=found,
                allowed=allowed,
                do="put it in quotes",
            )
        if not more.get("minimum", value) <= value <= more.get("maximum", value):
            rule = FORMS.get(more.get("form", ""))
            allowed = rule.allowed if rule else f"{more['minimum']} to {more['maximum']}"
            self._refuse(rule.code if rule else "DEF046", "out of range", node, found=shown(node.text), allowed=allowed)
        return value

    def _enum_member(self, kind: type[StrEnum], node: Scalar) -> StrEnum:
        values = [member.value for member in kind]
        if node.text not in values:
            self._unknown_value(node, values, "DEF046")
        return kind(node.text)

    def _text(self, node: Scalar, more: Map[str, Any]) -> str:
        form = FORMS.get(more.get("form", ""))
        error = form.error(node.text) if form else ""
        if form and error:
            self._refuse(form.code, error, node, found=f"text {shown(node.text)}", allowed=form.allowed)
        if not node.text.strip() or not node.text.isprintable():
            self._refuse("DEF018", "empty text or control characters", node, found=f"text {shown(node.text)}")
        if "choices" in more and node.text not in (known := known_kinds(more["choices"])):
            self._unknown_value(node, known, "DEF048")
        return node.text

    def _unknown_value(self, node: Scalar, known: list[str], code: str) -> NoReturn:
        self._refuse(
            code,
            "unknown value",
            node,
            found=f"text {shown(node.text)}",
            allowed=", ".join(known),
            do=did_you_mean(node.text, known),
        )

    def _mismatch(self, kind: Any, node: Node, more: Map[str, Any], code: str = "DEF018") -> NoReturn:
        name, allowed = describe_expected(kind)
        form = FORMS.get(more.get("form", ""))
        if form:
            code, allowed = form.code, form.allowed
        self._refuse(
            code, f"expected {name}", node, found=describe_found(node), allowed=allowed, do=suggest_fix(kind, node)
        )

    def _refuse(
        self, code: str, what: str, node: Node, *, found: str = "", allowed: str = "", do: str = ""
    ) -> NoReturn:
        self.report.problem(code, what, node.at, found=found, allowed=allowed, do=do)
        raise Unusable


@cache
def _fields(kind: Any) -> tuple[dict[str, Field[Any]], str]:
    """The fields with YAML keys, and the name of the field for the options of a type (empty if there is none)."""
    inline = [f.name for f in fields(kind) if f.metadata.get("inline")]
    return {f.name: f for f in fields(kind) if f.name not in inline}, inline[0] if inline else ""


def _is_no_option(key: Scalar, known: Map[str, Field[Any]], given: Given) -> bool:
    """Whether a key is certainly no option of an unknown type: a secret, or a misspelled `type`."""
    return bool(SECRET_KEY.search(key.text)) or ("type" not in given and nearest(key.text, known) == "type")


def _all_types_known(known: Map[str, Field[Any]], values: Map[str, Any]) -> bool:
    """Whether all type fields have values."""
    return all(name in values for name, member in known.items() if "choices" in member.metadata)


def _required(member: Field[Any]) -> bool:
    return member.default is MISSING and member.default_factory is MISSING


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _yaml_type(node: Scalar) -> type:
    """The type of a scalar in YAML. Dates are rejected as text: they must be quoted."""
    return {"bool": bool, "int": int, "float": float}.get(node.kind, str)


def _is_unambiguous(node: Scalar) -> bool:
    """Whether the plain text equals its YAML value: ``4`` and ``true``, but not ``010`` or ``on``."""
    if node.kind == "bool":
        return node.text in ("true", "false")
    return node.kind in ("int", "float") and DECIMAL.fullmatch(node.text) is not None
