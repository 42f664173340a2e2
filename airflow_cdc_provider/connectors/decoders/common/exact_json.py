"""JSON as the standard has it: Python's own reader takes NaN, names that come twice, and numbers too large. Pure.

Whole numbers keep all digits, others become Decimal and keep theirs. A quick reader goes first; where it refuses, or
where a name may have come twice, which it does not see, the exact one tells.
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

MOST_BYTES = 128 * 1024 * 1024
MOST_DIGITS = 4300
"""Python's own limit for text that becomes a whole number."""

OPENING = ("{", "[")
CONTAINERS = (dict, list)
BLANKS = re.compile(r"[ \t\r\n]*")
LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")


def parse(data: bytes) -> Any:
    """Raises DecodeError."""
    return parse_text(text_of(data))


def text_of(data: bytes) -> str:
    """Raises DecodeError."""
    if len(data) > MOST_BYTES:
        raise DecodeError(TOO_LARGE, f"a message of {len(data):,} bytes; {MOST_BYTES:,} are read")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DecodeError(WRONG_TEXT, f"not UTF-8 at byte {error.start}") from error


def parse_text(text: str) -> Any:
    """Raises DecodeError."""
    try:
        value = QUICK(text)
        if _has_each_name_once(text, value):
            return value
    except (MsgspecError, DecodeError, UnicodeError, RecursionError):
        pass
    return parse_exactly(text)


def parse_exactly(text: str) -> Any:
    """The same, slower. Raises DecodeError."""
    value, end = parse_at(text, 0)
    if end != len(text) and text[end:].strip(" \t\r\n"):
        raise DecodeError(NOT_JSON, f"more behind the value, character {end}")
    return value


def parse_at(text: str, at: int) -> tuple[Any, int]:
    """The value that begins at ``at``, and where it ends. Raises DecodeError."""
    try:
        begin = at if text[at : at + 1] in OPENING else BLANKS.match(text, at).end()  # type: ignore[union-attr]
        value, end = SCAN(text, begin)
    except StopIteration as error:
        raise DecodeError(NOT_JSON, f"not JSON at character {error.value}") from error
    except json.JSONDecodeError as error:
        raise DecodeError(NOT_JSON, f"not JSON at character {error.pos}") from error
    except RecursionError as error:
        raise DecodeError(TOO_DEEP, "nested too deeply") from error
    except DecodeError:
        raise
    except ValueError as error:
        raise DecodeError(NOT_EXACT, f"a number of more than {MOST_DIGITS} digits") from error
    if "\\u" in text and LONE_SURROGATE.search(dumps(value)):
        raise DecodeError(WRONG_TEXT, "half a character (a lone surrogate)")
    return value, end


def _has_each_name_once(text: str, value: Any) -> bool:
    """False where only a closer look could tell."""
    if "\n" in text or "\t" in text or "\r" in text or (" " in text and " :" in text):
        return False
    return names_in(text, '":', "\\") == (_members_of(value) if isinstance(value, CONTAINERS) else 0)


def names_in(text: AnyStr, end: AnyStr, backslash: AnyStr) -> int:
    """How many members the objects of a JSON text have. Outside of strings, a quote before a colon (``end``) ends a
    name; one behind blanks is not counted."""
    names, sign, escaped = text.count(end), -1, backslash + end
    while found := text.count(escaped):  # of several backslashes each second one is a character
        names, sign, escaped = names + sign * found, -sign, backslash + escaped
    return names


def _members_of(value: dict[str, Any] | list[Any]) -> int:
    inner: Iterable[Any] = value.values() if isinstance(value, dict) else value
    members = len(value) if isinstance(value, dict) else 0
    for one in inner:
        if type(one) is dict or type(one) is list:
            members += _members_of(one)
    return members


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise DecodeError(NOT_EXACT, "a name comes twice in one object")
    return members


def _real(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation as error:  # an exponent that no number has
        raise DecodeError(NOT_EXACT, "a number beyond all bounds") from error


def _no_json(value: Any) -> Any:
    raise TypeError(type(value))


def _refused(_name: str) -> Any:
    raise DecodeError(NOT_EXACT, "NaN or Infinity, which JSON does not know")


QUICK = Decoder(float_hook=_real).decode
SCAN = json.JSONDecoder(object_pairs_hook=_members, parse_float=_real, parse_constant=_refused).scan_once  # type: ignore[attr-defined]


# One encoder for good: JSONEncoder.encode makes a new one for each value, which costs as much as a small value.
ENCODE = c_make_encoder(None, _no_json, encode_basestring, None, ":", ",", False, False, False)


def dumps(value: Any) -> str:
    """Canonical JSON text of a parsed value: no spaces, order and digits kept."""
    try:
        return "".join(ENCODE(value, 0))
    except TypeError:  # it does not know Decimal
        return _written(value)
    except RecursionError as error:
        raise DecodeError(TOO_DEEP, "nested too deeply") from error


def _written(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join([f"{encode_basestring(name)}:{_written(one)}" for name, one in value.items()]) + "}"
    if isinstance(value, list):
        return "[" + ",".join([_written(one) for one in value]) + "]"
    return str(value) if isinstance(value, Decimal) else "".join(ENCODE(value, 0))
