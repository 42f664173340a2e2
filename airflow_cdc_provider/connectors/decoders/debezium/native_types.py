"""Semantic types of columns, from the database's type and the connector's settings. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from airflow_cdc_provider.connectors.decoders.debezium import semantics as s
from airflow_cdc_provider.connectors.decoders.debezium.options import DebeziumOptions
from airflow_cdc_provider.connectors.decoders.debezium.semantics import Semantic

STRING = Semantic("string")
Length = int | None

PLAIN: Mapping[str, Mapping[str, Semantic]] = {
    "mysql": {
        "BOOLEAN": Semantic("boolean"),
        "BOOL": Semantic("boolean"),
        "TINYINT": Semantic("int16"),
        "SMALLINT": Semantic("int16"),
        "SMALLINT UNSIGNED": Semantic("int32"),
        "MEDIUMINT": Semantic("int32"),
        "INT": Semantic("int32"),
        "INTEGER": Semantic("int32"),
        "INT UNSIGNED": Semantic("int64"),
        "INTEGER UNSIGNED": Semantic("int64"),
        "BIGINT": Semantic("int64"),
        "REAL": Semantic("double"),
        "DOUBLE": Semantic("double"),
        "DOUBLE PRECISION": Semantic("double"),
        "JSON": Semantic("string", f"{s.DATA}Json"),
        "ENUM": Semantic("string", f"{s.DATA}Enum"),
        "SET": Semantic("string", f"{s.DATA}EnumSet"),
        "TIMESTAMP": Semantic("string", f"{s.TIME}ZonedTimestamp"),
        "YEAR": Semantic("int32", f"{s.TIME}Year"),
        "POINT": Semantic("struct", f"{s.DATA}geometry.Point"),
        **dict.fromkeys(("CHAR", "VARCHAR", "NCHAR", "NVARCHAR", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT"), STRING),
        **{
            name: Semantic("struct", f"{s.DATA}geometry.Geometry")
            for name in ("GEOMETRY", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON")
        },
    },
    "sqlserver": {
        "BIT": Semantic("boolean"),
        "TINYINT": Semantic("int16"),
        "SMALLINT": Semantic("int16"),
        "INT": Semantic("int32"),
        "BIGINT": Semantic("int64"),
        "REAL": Semantic("float"),
        "FLOAT": Semantic("double"),
        "XML": Semantic("string", f"{s.DATA}Xml"),
        "DATETIMEOFFSET": Semantic("string", f"{s.TIME}ZonedTimestamp"),
        **dict.fromkeys(("CHAR", "VARCHAR", "TEXT", "NCHAR", "NVARCHAR", "NTEXT", "UNIQUEIDENTIFIER"), STRING),
    },
    "oracle": {
        "BINARY_FLOAT": Semantic("float"),
        "BINARY_DOUBLE": Semantic("double"),
        "FLOAT": Semantic("struct", f"{s.DATA}VariableScaleDecimal"),
        "XMLTYPE": Semantic("string", f"{s.DATA}Xml"),
        **dict.fromkeys(("CHAR", "NCHAR", "VARCHAR", "VARCHAR2", "NVARCHAR2", "CLOB", "NCLOB", "ROWID"), STRING),
    },
}
BINARY = frozenset({"BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB", "IMAGE", "ROWVERSION", "RAW"})
DATES, TIMES = frozenset({"DATE"}), frozenset({"TIME"})
TIMESTAMPS = frozenset({"DATETIME", "DATETIME2", "SMALLDATETIME", "TIMESTAMP"})
DECIMALS = frozenset({"DECIMAL", "NUMERIC", "FIXED", "DEC"})
MONEY = {"MONEY": (19, 4), "SMALLMONEY": (10, 4)}
FRACTION_DIGITS = {"DATETIME2": 7, "TIME": 7, "DATETIME": 3, "TIMESTAMP": 6}
"""The default number of fraction digits; in MySQL it is 0."""


def semantic_of(connector: str, column: Mapping[str, Any], options: DebeziumOptions) -> Semantic | None:
    """``column``: of the schema-change topic. None for unknown types."""
    name = str(column.get("typeName") or "").upper().replace(" ZEROFILL", "").strip()
    system = "mysql" if connector == "mariadb" else connector
    length, scale = _digits(column.get("length")), _digits(column.get("scale"))
    base = name.partition("(")[0].removesuffix(" UNSIGNED").removesuffix(" SIGNED").strip()
    unsigned = name.endswith(" UNSIGNED")
    if system == "oracle":
        return _oracle(name, base, length, scale, options)
    if base in MONEY:
        return _decimal(*MONEY[base], options.decimals)
    if base in DECIMALS:
        return _decimal(length if length is not None else 10, scale or 0, options.decimals)
    if base == "BIGINT" and unsigned:
        if options.unsigned_bigints == "precise":
            return _decimal(20, 0, "precise")
        return Semantic("int64", "", ((s.UNSIGNED, "true"),))
    if base == "BIT" and system == "mysql":
        bits = length or 1
        return Semantic("boolean") if bits == 1 else Semantic("bytes", f"{s.DATA}Bits", ((s.LENGTH, str(bits)),))
    if base == "FLOAT" and system == "mysql":
        return Semantic("double" if (length or 0) > 23 and scale is None else "float")
    if base in BINARY or (base == "TIMESTAMP" and system == "sqlserver"):
        return _binary(options.binaries)
    plain = PLAIN.get(system, {})
    semantic = plain.get(f"{base} UNSIGNED") if unsigned else None
    semantic = semantic or plain.get(base)
    if semantic is not None:
        return semantic
    default = FRACTION_DIGITS.get(base, 0) if system == "sqlserver" else 0
    digits = scale if system == "sqlserver" and scale is not None else length
    return _timed(base, default if digits is None else digits, system, options)


def _digits(value: Any) -> Length:
    return value if type(value) is int and 0 <= value < 1 << 31 else None


def _oracle(name: str, base: str, length: Length, scale: Length, options: DebeziumOptions) -> Semantic | None:
    if name.startswith("TIMESTAMP") and "TIME ZONE" in name:
        return Semantic("string", f"{s.TIME}ZonedTimestamp")
    if name.startswith("INTERVAL"):
        return Semantic("int64", f"{s.TIME}MicroDuration")
    if base in ("NUMBER", "NUMERIC", "DECIMAL", "DEC"):
        if length is None or length == 0:
            return _decimal_text(options.decimals) or Semantic("struct", f"{s.DATA}VariableScaleDecimal")
        if (scale or 0) == 0:
            for kind, digits in (("int8", 3), ("int16", 5), ("int32", 10), ("int64", 19)):
                if length < digits:
                    return Semantic(kind)
        return _decimal(length, scale or 0, options.decimals)
    if base in ("BLOB", "RAW"):
        return _binary(options.binaries)
    if base == "DATE":
        return _timed("DATETIME", 0, "oracle", options)
    if base == "TIMESTAMP":
        return _timed("TIMESTAMP", 6 if scale is None and length is None else (scale or length or 0), "oracle", options)
    return PLAIN["oracle"].get(base)


def _decimal(precision: int, scale: int, mode: str) -> Semantic:
    return _decimal_text(mode) or Semantic("bytes", s.DECIMAL, ((s.SCALE, str(scale)), (s.PRECISION, str(precision))))


def _decimal_text(mode: str) -> Semantic | None:
    return {"double": Semantic("double"), "string": STRING}.get(mode)


def _binary(mode: str) -> Semantic:
    return Semantic("bytes") if mode == "bytes" else STRING


def _timed(base: str, digits: int, system: str, options: DebeziumOptions) -> Semantic | None:
    mode = options.time_precision or ("adaptive_time_microseconds" if system == "mysql" else "adaptive")
    if base in DATES:
        return _by_mode(mode, "Date", "int32", lambda: Semantic("int32", f"{s.TIME}Date"))
    if base in TIMES:
        return _by_mode(mode, "Time", "int32", lambda: _time(mode, digits))
    if base in TIMESTAMPS:
        return _by_mode(mode, "Timestamp", "int64", lambda: _timestamp(mode, digits))
    return None


def _by_mode(mode: str, what: str, connect: str, adaptive: Callable[[], Semantic]) -> Semantic:
    if mode == "connect":
        return Semantic(connect, f"{s.CONNECT}{what}")
    if mode == "isostring":
        return Semantic("string", f"{s.TIME}Iso{what}")
    return adaptive()


def _time(mode: str, digits: int) -> Semantic:
    if mode == "nanoseconds":
        return Semantic("int64", f"{s.TIME}NanoTime")
    if mode in ("microseconds", "adaptive_time_microseconds") or 3 < digits <= 6:
        return Semantic("int64", f"{s.TIME}MicroTime")
    return Semantic("int64", f"{s.TIME}NanoTime") if digits > 6 else Semantic("int32", f"{s.TIME}Time")


def _timestamp(mode: str, digits: int) -> Semantic:
    if mode == "nanoseconds" or (digits > 6 and mode != "microseconds"):
        return Semantic("int64", f"{s.TIME}NanoTimestamp")
    if mode == "microseconds" or digits > 3:
        return Semantic("int64", f"{s.TIME}MicroTimestamp")
    return Semantic("int64", f"{s.TIME}Timestamp")
