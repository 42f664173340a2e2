"""Strict JSON: Python's own parser accepts NaN, duplicate names, and numbers out of range. Pure.

Integers keep all digits; other numbers become Decimal. A fast parser is tried first. The exact one is used if the fast
one fails, or if an object may have duplicate names, which the fast one accepts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from json.encoder import c_make_encoder, encode_basestring  # type: ignore[attr-defined]
from typing import Any, AnyStr

from msgspec import MsgspecError
from msgspec.json import Decoder

from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    NOT_EXACT,
    NOT_JSON,
    TOO_DEEP,
    TOO_LARGE,
    WRONG_TEXT,
    DecodeError,
)

MAX_BYTES = 128 * 1024 * 1024
MAX_DIGITS = 4300
"""Python's limit for converting text to an integer."""

OPENING = ("{", "[")
CONTAINERS = (dict, list)
BLANKS = re.compile(r"[ \t\r\n]*")
LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")


def parse(data: bytes) -> Any:
    """Raises DecodeError."""
    return parse_text(text_of(data))


def text_of(data: bytes) -> str:
    """Raises DecodeError."""
    if len(data) > MAX_BYTES:
        raise DecodeError(TOO_LARGE, f"a message of {len(data):,} bytes; the maximum is {MAX_BYTES:,}")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DecodeError(WRONG_TEXT, f"not UTF-8 at byte {error.start}") from error


def parse_text(text: str) -> Any:
    """Raises DecodeError."""
    try:
        value = FAST(text)
        if _has_each_name_once(text, value):
            return value
    except (MsgspecError, DecodeError, UnicodeError, RecursionError):
        pass
    return parse_exactly(text)


def parse_exactly(text: str) -> Any:
    """As ``parse_text``, slower. Raises DecodeError."""
    value, end = parse_at(text, 0)
    if end != len(text) and text[end:].strip(" \t\r\n"):
        raise DecodeError(NOT_JSON, f"extra data after the value, at character {end}")
    return value


def parse_at(text: str, at: int) -> tuple[Any, int]:
    """The value that starts at ``at``, and the offset of its end. Raises DecodeError."""
    try:
        start = at if text[at : at + 1] in OPENING else BLANKS.match(text, at).end()  # type: ignore[union-attr]
        value, end = SCAN(text, start)
    except StopIteration as error:
        raise DecodeError(NOT_JSON, f"not JSON at character {error.value}") from error
    except json.JSONDecodeError as error:
        raise DecodeError(NOT_JSON, f"not JSON at character {error.pos}") from error
    except RecursionError as error:
        raise DecodeError(TOO_DEEP, "nested too deeply") from error
    except DecodeError:
        raise
    except ValueError as error:
        raise DecodeError(NOT_EXACT, f"a number of more than {MAX_DIGITS} digits") from error
    if "\\u" in text and LONE_SURROGATE.search(dumps(value)):
        raise DecodeError(WRONG_TEXT, "a lone surrogate (half a character)")
    return value, end


def _has_each_name_once(text: str, value: Any) -> bool:
    """False if ``text`` must be parsed exactly to decide it."""
    if "\n" in text or "\t" in text or "\r" in text or (" " in text and " :" in text):
        return False
    return count_names(text, '":', "\\") == (_count_members(value) if isinstance(value, CONTAINERS) else 0)


def count_names(text: AnyStr, end: AnyStr, backslash: AnyStr) -> int:
    """The number of members of all objects in a JSON text. ``end``: a quote and a colon, which end a name; a name with
    whitespace before the colon is not counted."""
    names, sign, escaped = text.count(end), -1, backslash + end
    while count := text.count(escaped):  # an even number of backslashes does not escape the quote
        names, sign, escaped = names + sign * count, -sign, backslash + escaped
    return names


def _count_members(value: dict[str, Any] | list[Any]) -> int:
    inner: Iterable[Any] = value.values() if isinstance(value, dict) else value
    members = len(value) if isinstance(value, dict) else 0
    for child in inner:
        if type(child) is dict or type(child) is list:
            members += _count_members(child)
    return members


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise DecodeError(NOT_EXACT, "an object has a duplicate name")
    return members


def _to_decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation as error:  # an exponent out of range
        raise DecodeError(NOT_EXACT, "a number out of range") from error


def _reject_type(value: Any) -> Any:
    raise TypeError(type(value))


def _reject_constant(_name: str) -> Any:
    raise DecodeError(NOT_EXACT, "NaN or Infinity, which JSON does not allow")


FAST = Decoder(float_hook=_to_decimal).decode
SCAN = json.JSONDecoder(
    object_pairs_hook=_unique_members, parse_float=_to_decimal, parse_constant=_reject_constant
).scan_once  # type: ignore[attr-defined]


# A single encoder: JSONEncoder.encode creates one per value, which takes as long as encoding a small value.
ENCODE = c_make_encoder(None, _reject_type, encode_basestring, None, ":", ",", False, False, False)


def dumps(value: Any) -> str:
    """Canonical JSON text of a parsed value: no spaces; order and digits are kept."""
    try:
        return "".join(ENCODE(value, 0))
    except TypeError:  # the encoder does not support Decimal
        return _to_json(value)
    except RecursionError as error:
        raise DecodeError(TOO_DEEP, "nested too deeply") from error


def _to_json(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join([f"{encode_basestring(name)}:{_to_json(member)}" for name, member in value.items()]) + "}"
    if isinstance(value, list):
        return "[" + ",".join([_to_json(item) for item in value]) + "]"
    return str(value) if isinstance(value, Decimal) else "".join(ENCODE(value, 0))
