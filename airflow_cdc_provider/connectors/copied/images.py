"""Row images and keys of a source as those of the copy. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from json.encoder import encode_basestring
from typing import Any

from airflow_cdc_provider.core.columns.casts import CannotCast
from airflow_cdc_provider.core.columns.copied import CopiedColumn, CopiedColumns
from airflow_cdc_provider.core.columns.values import from_json, to_json
from airflow_cdc_provider.core.log.change_records import canonical
from airflow_cdc_provider.core.spec.columns import Metadata
from airflow_cdc_provider.core.table.schema import LogicalType

Texts = Mapping[Metadata, str]
"""JSON texts of the metadata of a change. Metadata that the image cannot have is absent."""

MISSING = object()


class FloatText(str):
    """A float as it is written in the image."""

    __slots__ = ()


_parse = json.JSONDecoder(parse_float=FloatText).decode


@dataclass(slots=True)
class CopiedImage:
    """``failed``: columns of the copy whose type does not have the source's value; the image lacks them. ``reason``: of
    the first one."""

    text: str
    failed: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class CopiedKey:
    """None with a ``reason`` if the copy has no such key."""

    text: str | None
    reason: str = ""


class CopiedImages:
    """For the images of one schema."""

    def __init__(self, columns: CopiedColumns) -> None:
        self._members = [_Member(one) for one in columns.columns]
        self._by_source = {member.source: member for member in self._members}
        self._key = [self._by_source[name] for name in columns.schema.key]
        self._shard = [canonical(columns.rule.shard_value)] if columns.rule.shard_column else []
        # Tuples and the types of most values are handled in the loop itself, which halves its time.
        self._plan = [
            (member.label, member.source, member.convert, None if member.is_plain else member)
            for member in self._members
        ]

    def image(self, image: str, metadata: Texts) -> CopiedImage:
        values = _parse(image)
        members, failed, reason = [], list[str](), ""
        for label, source, convert, special in self._plan:
            try:
                if special is not None:
                    text = special.text(values, metadata)
                    if text is not None:
                        members.append(label + text)
                    continue
                value = values.get(source, MISSING)
                if value is MISSING:
                    continue
                if value is None:
                    members.append(label + "null")
                elif convert is not None:
                    members.append(label + convert(value))
                elif type(value) is str:
                    members.append(label + encode_basestring(value))
                else:
                    members.append(label + _text(value))
            except CannotCast as error:
                name = json.loads(label[:-1])
                failed.append(name)
                reason = reason or f"{name}: {error}"
        return CopiedImage("{" + ",".join(members) + "}", tuple(failed), reason)

    def key(self, key: str | None) -> CopiedKey:
        if key is None:
            return CopiedKey(None)
        try:
            texts = [member.value_text(value) for member, value in zip(self._key, _parse(key), strict=True)]
        except CannotCast as error:
            return CopiedKey(None, f"the key: {error}")
        return CopiedKey(f"[{','.join((*self._shard, *texts))}]")

    def name(self, source: str) -> str:
        """The name in the copy of a column of the source."""
        return self._by_source[source].name if source in self._by_source else source


@dataclass
class _Member:
    """A column of the copy."""

    copied: CopiedColumn
    source: str = field(init=False)
    convert: Callable[[Any], str] | None = field(init=False)

    def __post_init__(self) -> None:
        copied = self.copied
        self.name = copied.column.name
        self.label = f"{encode_basestring(self.name)}:"
        self.source = copied.source.name if copied.source else ""
        self.convert = None
        if copied.source and copied.convert:
            self.convert = _converter(copied.source.type, copied.column.type, copied.convert)
        self.failed = ""
        if copied.failed:
            self.failed = copied.failed.column.name
            self.failed_text = _converter(copied.failed.column.type, copied.column.type, copied.failed.text)
        self.metadata = copied.added.metadata if copied.added else None
        self.is_plain = copied.added is None and copied.failed is None
        self.constant = canonical(copied.added.value) if copied.added and not self.metadata else None

    def text(self, values: Mapping[str, Any], metadata: Texts) -> str | None:
        """The JSON text, None if the image does not have the value."""
        if self.constant is not None:
            return self.constant
        if self.metadata is not None:
            return metadata.get(self.metadata)
        value = values.get(self.source, MISSING) if self.source else None
        if value is None and self.failed:
            value = values.get(self.failed, MISSING)
            return None if value is MISSING else "null" if value is None else self.failed_text(value)
        return None if value is MISSING else self.value_text(value)

    def value_text(self, value: Any) -> str:
        if value is None:
            return "null"
        return _text(value) if self.convert is None else self.convert(value)


def _converter(source: LogicalType, target: LogicalType, convert: Callable[[Any], Any]) -> Callable[[Any], str]:
    read, write = from_json(source.kind), to_json(target)

    def converted(value: Any) -> str:
        result = convert(read(value))
        return "null" if result is None else _text(write(result))

    return converted


def _text(value: Any) -> str:
    """A value other than null, as it is in canonical JSON."""
    kind = type(value)
    if kind is str:
        return encode_basestring(value)
    if kind is FloatText:
        return str(value)
    return repr(value) if kind is int else canonical(value)
