"""Values of Debezium's JSON as canonical JSON, by their semantic type. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any

from airflow_cdc_provider.connectors.decoders.common import column_texts, times, values
from airflow_cdc_provider.connectors.decoders.common.column_texts import ArrowConverter
from airflow_cdc_provider.connectors.decoders.common.dead_letters import WRONG_NUMBER, WRONG_VALUE, DecodeError
from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.decoders.common.times import Warn
from airflow_cdc_provider.connectors.decoders.common.values import Converter
from airflow_cdc_provider.connectors.decoders.debezium import semantics as s
from airflow_cdc_provider.connectors.decoders.debezium import undeclared
from airflow_cdc_provider.connectors.decoders.debezium.semantics import Semantic
from airflow_cdc_provider.core.table.schema import Column, LogicalType

if TYPE_CHECKING:
    from pyarrow import Array, StringArray

TimeConverter = Callable[[Any, Warn], str]
TIMES: Mapping[str, TimeConverter] = {
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
ARROW_TIMES: Mapping[str, ArrowConverter] = {
    f"{s.TIME}Date": column_texts.dates,
    f"{s.CONNECT}Date": column_texts.dates,
    f"{s.TIME}Timestamp": column_texts.timestamps(1000),
    f"{s.CONNECT}Timestamp": column_texts.timestamps(1000),
    f"{s.TIME}MicroTimestamp": column_texts.timestamps(1),
}
NUMBERS = frozenset({f"{s.DATA}VariableScaleDecimal", f"{s.DATA}Bits"})
EXACT_NUMBERS = frozenset({s.DECIMAL, f"{s.DATA}VariableScaleDecimal"})
WRAP = 1 << 64
MAX_DIGITS = 4_000
"""Slightly below Python's limit for converting between text and integers."""
TOO_MANY_DIGITS = f"a decimal of more than {MAX_DIGITS:,} digits"


def column_semantic(column: Column) -> Semantic | None:
    """The semantic type of a column of a declared schema; None if ``native`` is a type of another system, which does
    not define units of time."""
    semantic = s.from_native(column.native)
    return semantic if semantic is not None and s.logical_type(semantic) == column.type else None


def converter(column: Column, warn: Warn, binaries: str = "bytes") -> Converter:
    """``binaries``: the connector's ``binary.handling.mode``."""
    semantic = column_semantic(column)
    return undeclared.converter(column, warn, binaries) if semantic is None else semantic_converter(semantic, warn)


def semantic_converter(semantic: Semantic, warn: Warn) -> Converter:
    name, kind = semantic.name, s.logical_type(semantic)
    if name in TIMES:
        return _with_warn(TIMES[name], warn)
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


def arrow_converter(semantic: Semantic) -> ArrowConverter | None:
    """As ``semantic_converter``, for Arrow columns; None if the type is not supported."""
    if semantic.name in TIMES:
        return ARROW_TIMES.get(semantic.name)
    if semantic.name == s.DECIMAL:
        return _arrow_decimal(semantic.number(s.SCALE) or 0, s.logical_type(semantic))
    if semantic.name in NUMBERS or s.is_unsigned_bigint(semantic) or semantic.type in s.INNER:
        return None
    return column_texts.converter_of_kind(s.logical_type(semantic).kind)


def _collection(semantic: Semantic, warn: Warn) -> Converter:
    if semantic.inner is None:
        return undeclared.document
    convert = _member(semantic, warn)
    return lambda value: encode_basestring(convert(value))


def _member(semantic: Semantic, warn: Warn) -> Converter:
    """For members of collections, where numbers stay JSON numbers with all digits."""
    if semantic.type == "struct" and semantic.name not in NUMBERS:
        return dumps
    if semantic.inner is not None:
        return _members(semantic.type, _member(semantic.inner, warn))
    convert = semantic_converter(semantic, warn)
    if semantic.name in EXACT_NUMBERS or s.is_unsigned_bigint(semantic):
        return lambda value: convert(value)[1:-1]
    return convert


def _members(kind: str, convert: Converter) -> Converter:
    def member(value: Any) -> str:
        return "null" if value is None else convert(value)

    def array(value: Any) -> str:
        if not isinstance(value, list):
            raise DecodeError(WRONG_VALUE, "not an array")
        return f"[{','.join(map(member, value))}]"

    def object_(value: Any) -> str:
        if not isinstance(value, dict):
            raise DecodeError(WRONG_VALUE, "not a map")
        return "{" + ",".join([f"{encode_basestring(name)}:{member(item)}" for name, item in value.items()]) + "}"

    return array if kind == "array" else object_


def _with_warn(convert: TimeConverter, warn: Warn) -> Converter:
    return lambda value: convert(value, warn)


def _unscaled(value: Any) -> int:
    """Big-endian two's complement."""
    content = values.decode_base64(value)
    if not content:
        raise DecodeError(WRONG_VALUE, "a decimal without bytes")
    return int.from_bytes(content, "big", signed=True)


def _shifted(number: int | Decimal, scale: int) -> int:
    """The unscaled value of a decimal sent as a number, as with ``decimal.format=NUMERIC``."""
    sign, digits, exponent = Decimal(number).as_tuple()
    assert isinstance(exponent, int)  # JSON has no NaN or infinity
    by = exponent + scale
    if len(digits) + abs(by) > MAX_DIGITS:
        raise DecodeError(WRONG_NUMBER, TOO_MANY_DIGITS)
    whole = int("".join(map(str, digits)))
    power: int = 10 ** abs(by)
    if by < 0 and whole % power:
        raise DecodeError(WRONG_NUMBER, f"more than {scale} decimal places")
    unscaled = whole // power if by < 0 else whole * power
    return -unscaled if sign else unscaled


def _plain(unscaled: int, scale: int) -> str:
    if abs(scale) + unscaled.bit_length() // 3 > MAX_DIGITS:
        raise DecodeError(WRONG_NUMBER, TOO_MANY_DIGITS)
    if scale <= 0:
        return str(unscaled * 10**-scale)
    digits = f"{abs(unscaled):0{scale + 1}d}"
    return f"{'-' if unscaled < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def _decimal(scale: int, kind: LogicalType) -> Converter:
    limit = 10**kind.precision if kind.precision else None

    def convert(value: Any) -> str:
        is_number = type(value) is int or isinstance(value, Decimal)
        unscaled = _shifted(value, scale) if is_number else _unscaled(value)
        if limit is not None and abs(unscaled) >= limit:
            raise DecodeError(WRONG_NUMBER, f"too many digits for {kind}")
        return f'"{_plain(unscaled, scale)}"'

    return convert


def _arrow_decimal(scale: int, kind: LogicalType) -> ArrowConverter | None:
    if kind.precision is None:
        return None
    precision = kind.precision

    def texts(values: Array) -> StringArray | None:
        from airflow_cdc_provider.connectors.decoders.debezium.decimal_columns import decimal_texts

        return decimal_texts(values, scale, precision)

    return texts


def _variable_decimal(value: Any) -> str:
    if not isinstance(value, dict) or type(value.get("scale")) is not int:
        raise DecodeError(WRONG_VALUE, "not a decimal with a scale")
    return f'"{_plain(_unscaled(value.get("value")), value["scale"])}"'


def _bits(length: int | None) -> Converter:
    """Little-endian bytes, written like PostgreSQL bits: ``0101``, the highest bit first."""

    def convert(value: Any) -> str:
        content = values.decode_base64(value)
        bits = f"{int.from_bytes(content, 'little'):0{length or len(content) * 8}b}"
        if length and len(bits) > length:
            raise DecodeError(WRONG_VALUE, f"more than {length} bits")
        return f'"{bits}"'

    return convert


def _unsigned(warn: Warn) -> Converter:
    """An unsigned number that overflowed a signed one is sent as a negative number."""

    def convert(value: Any) -> str:
        if type(value) is not int or not -WRAP // 2 <= value < WRAP:
            raise DecodeError(WRONG_VALUE, "not an unsigned number")
        if value < 0:
            warn("unsigned_wrapped")
            value += WRAP
        return f'"{value}"'

    return convert
