"""Values of Debezium's JSON as canonical JSON, by what the Connect schema says they mean. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.decoders.common import column_texts, times, values
from airflow_cdc_provider.connectors.decoders.common.column_texts import Quick
from airflow_cdc_provider.connectors.decoders.common.dead_letters import (
    NO_SCHEMA,
    WRONG_NUMBER,
    WRONG_VALUE,
    DecodeError,
)
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.decoders.common.times import Warn
from airflow_cdc_provider.connectors.decoders.common.values import Convert
from airflow_cdc_provider.connectors.decoders.debezium import semantics as s
from airflow_cdc_provider.connectors.decoders.debezium.semantics import Semantic
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType

if TYPE_CHECKING:
    from pyarrow import Array, StringArray

Timed = Callable[[Any, Warn], str]
TIMED: Mapping[str, Timed] = {
    f"{s.TIME}Date": times.date_of_days,
    f"{s.CONNECT}Date": times.date_of_days,
    f"{s.TIME}IsoDate": times.date_of_text,
    f"{s.TIME}Time": times.time_of_ms,
    f"{s.CONNECT}Time": times.time_of_ms,
    f"{s.TIME}MicroTime": times.time_of_us,
    f"{s.TIME}NanoTime": times.time_of_ns,
    f"{s.TIME}Timestamp": times.timestamp_of_ms,
    f"{s.CONNECT}Timestamp": times.timestamp_of_ms,
    f"{s.TIME}MicroTimestamp": times.timestamp_of_us,
    f"{s.TIME}NanoTimestamp": times.timestamp_of_ns,
    f"{s.TIME}IsoTimestamp": times.timestamp_of_text,
    f"{s.TIME}ZonedTimestamp": times.timestamptz_of_text,
}
QUICK_TIMES: Mapping[str, Quick] = {
    f"{s.TIME}Date": column_texts.days,
    f"{s.CONNECT}Date": column_texts.days,
    f"{s.TIME}Timestamp": column_texts.moments(1000),
    f"{s.CONNECT}Timestamp": column_texts.moments(1000),
    f"{s.TIME}MicroTimestamp": column_texts.moments(1),
}
NUMBERS = frozenset({f"{s.DATA}VariableScaleDecimal", f"{s.DATA}Bits"})
EXACT_NUMBERS = frozenset({s.DECIMAL, f"{s.DATA}VariableScaleDecimal"})
WRAP = 1 << 64
MOST_DIGITS = 4_000
"""Python itself reads and writes numbers of a few more."""
TOO_MANY_DIGITS = "a decimal of more digits than any system has"


def semantic_of_column(column: Column) -> Semantic | None:
    """What a column of a schema that somebody described means; None for one in another system's words, which has no
    units of time."""
    semantic = s.of_native(column.native)
    return semantic if semantic is not None and s.logical_type(semantic) == column.type else None


def of_column(column: Column, warn: Warn) -> Convert:
    semantic = semantic_of_column(column)
    return _by_looks(column.type, warn) if semantic is None else of_semantic(semantic, warn)


def of_semantic(semantic: Semantic, warn: Warn) -> Convert:
    name, kind = semantic.name, s.logical_type(semantic)
    if name in TIMED:
        return _warning(TIMED[name], warn)
    if name == s.DECIMAL:
        return _decimal(semantic.number(s.SCALE) or 0, kind)
    if name == f"{s.DATA}VariableScaleDecimal":
        return _variable_decimal
    if name == f"{s.DATA}Bits":
        return _bits(semantic.number(s.LENGTH))
    if s.is_unsigned_bigint(semantic):
        return _unsigned(warn)
    if semantic.type in s.INNER:
        return _collection(semantic, warn)
    return values.converter(kind, warn)


def quick_of(semantic: Semantic) -> Quick | None:
    """The same as ``of_semantic`` for many values, where they can be told together."""
    if semantic.name in TIMED:
        return QUICK_TIMES.get(semantic.name)
    if semantic.name == s.DECIMAL:
        return _quick_decimal(semantic.number(s.SCALE) or 0, s.logical_type(semantic))
    if semantic.name in NUMBERS or s.is_unsigned_bigint(semantic) or semantic.type in s.INNER:
        return None
    return column_texts.of_kind(s.logical_type(semantic).kind)


def _collection(semantic: Semantic, warn: Warn) -> Convert:
    if semantic.inner is None:
        return _of_unknown_members
    tell = _member(semantic, warn)
    return lambda value: encode_basestring(tell(value))


def _member(semantic: Semantic, warn: Warn) -> Convert:
    """As it stands within the JSON of a collection: numbers are numbers there, of all their digits."""
    if semantic.type == "struct" and semantic.name not in NUMBERS:
        return dumps
    if semantic.inner is not None:
        return _members(semantic.type, _member(semantic.inner, warn))
    convert = of_semantic(semantic, warn)
    if semantic.name in EXACT_NUMBERS or s.is_unsigned_bigint(semantic):
        return lambda value: convert(value)[1:-1]
    return convert


def _members(kind: str, tell: Convert) -> Convert:
    def told(value: Any) -> str:
        return "null" if value is None else tell(value)

    def array(value: Any) -> str:
        if not isinstance(value, list):
            raise DecodeError(WRONG_VALUE, "not an array")
        return f"[{','.join(map(told, value))}]"

    def object_(value: Any) -> str:
        if not isinstance(value, dict):
            raise DecodeError(WRONG_VALUE, "not a map")
        return "{" + ",".join([f"{encode_basestring(name)}:{told(one)}" for name, one in value.items()]) + "}"

    return array if kind == "array" else object_


def _of_unknown_members(value: Any) -> str:
    if isinstance(value, list) and any(not isinstance(one, bool | None) for one in value):
        raise DecodeError(NO_SCHEMA, "an array, and the table's schema does not say what its items are")
    return values.text(value)


def _warning(told: Timed, warn: Warn) -> Convert:
    return lambda value: told(value, warn)


def _unscaled(value: Any) -> int:
    """Big-endian two's complement."""
    content = values.decoded(value)
    if not content:
        raise DecodeError(WRONG_VALUE, "a decimal without digits")
    return int.from_bytes(content, "big", signed=True)


def _shifted(number: int | Decimal, scale: int) -> int:
    """What the digits are without a point. With ``decimal.format=NUMERIC`` decimals are told as numbers."""
    sign, digits, exponent = Decimal(number).as_tuple()
    assert isinstance(exponent, int)  # JSON knows no other numbers
    by = exponent + scale
    if len(digits) + abs(by) > MOST_DIGITS:
        raise DecodeError(WRONG_NUMBER, TOO_MANY_DIGITS)
    whole = int("".join(map(str, digits)))
    power: int = 10 ** abs(by)
    if by < 0 and whole % power:
        raise DecodeError(WRONG_NUMBER, f"more than {scale} digits behind the point")
    unscaled = whole // power if by < 0 else whole * power
    return -unscaled if sign else unscaled


def _plain(unscaled: int, scale: int) -> str:
    if abs(scale) + unscaled.bit_length() // 3 > MOST_DIGITS:
        raise DecodeError(WRONG_NUMBER, TOO_MANY_DIGITS)
    if scale <= 0:
        return str(unscaled * 10**-scale)
    digits = f"{abs(unscaled):0{scale + 1}d}"
    return f"{'-' if unscaled < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def _decimal(scale: int, kind: LogicalType) -> Convert:
    limit = 10**kind.precision if kind.precision else None

    def convert(value: Any) -> str:
        is_number = type(value) is int or isinstance(value, Decimal)
        unscaled = _shifted(value, scale) if is_number else _unscaled(value)
        if limit is not None and abs(unscaled) >= limit:
            raise DecodeError(WRONG_NUMBER, f"more digits than {kind} takes")
        return f'"{_plain(unscaled, scale)}"'

    return convert


def _quick_decimal(scale: int, kind: LogicalType) -> Quick | None:
    if kind.precision is None:
        return None
    precision = kind.precision

    def texts(values: Array) -> StringArray | None:
        from airflow_cdc_provider.connectors.decoders.debezium.decimal_columns import decimal_texts

        return decimal_texts(values, scale, precision)

    return texts


def _variable_decimal(value: Any) -> str:
    if not isinstance(value, dict) or type(value.get("scale")) is not int:
        raise DecodeError(WRONG_VALUE, "not a decimal with its scale")
    return f'"{_plain(_unscaled(value.get("value")), value["scale"])}"'


def _bits(length: int | None) -> Convert:
    """Little-endian bytes as PostgreSQL writes bits: ``0101``, the highest first."""

    def convert(value: Any) -> str:
        content = values.decoded(value)
        bits = f"{int.from_bytes(content, 'little'):0{length or len(content) * 8}b}"
        if length and len(bits) > length:
            raise DecodeError(WRONG_VALUE, f"more than {length} bits")
        return f'"{bits}"'

    return convert


def _unsigned(warn: Warn) -> Convert:
    """An unsigned number that was squeezed into a signed one comes as a negative one."""

    def convert(value: Any) -> str:
        if type(value) is not int or not -WRAP // 2 <= value < WRAP:
            raise DecodeError(WRONG_VALUE, "not an unsigned number")
        if value < 0:
            warn("unsigned_wrapped")
            value += WRAP
        return f'"{value}"'

    return convert


def _by_looks(kind: LogicalType, warn: Warn) -> Convert:
    match kind.kind:
        case Kind.DATE:
            return _texts_only(times.date_of_text, warn)
        case Kind.TIMESTAMP:
            return _texts_only(times.timestamp_of_text, warn)
        case Kind.TIMESTAMPTZ:
            return _texts_only(times.timestamptz_of_text, warn)
        case Kind.DECIMAL:
            return _number_or_text(values.converter(kind, warn))
        case Kind.TEXT:
            return values.text
        case Kind.JSON:
            return _of_unknown_members
        case _:
            return values.converter(kind, warn)


def _texts_only(told: Timed, warn: Warn) -> Convert:
    def convert(value: Any) -> str:
        if not isinstance(value, str):
            raise DecodeError(NO_SCHEMA, "a time as a number, and the table's schema does not say of which unit")
        return told(value, warn)

    return convert


def _number_or_text(exact: Convert) -> Convert:
    """Base64 might pass for a number: only what has a point, or came as a number, is certain to be one."""

    def convert(value: Any) -> str:
        if (
            isinstance(value, str)
            and value not in values.SPECIAL
            and not value.lstrip("-").replace(".", "", 1).isdecimal()
        ):
            raise DecodeError(NO_SCHEMA, "a decimal that is no text of a number, and the schema does not say its scale")
        return exact(value)

    return convert
