"""Columns of MySQL and MariaDB as logical types, and whether what the binlog tells of a column fits it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_cdc_provider.connectors.sources.mysql.table_map import Field, T
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType

MOST_DIGITS = 38
BINARY = "binary"
INTEGERS: dict[str, tuple[T, Kind, Kind]] = {
    "tinyint": (T.TINY, Kind.INT16, Kind.INT16),
    "smallint": (T.SHORT, Kind.INT16, Kind.INT32),
    "mediumint": (T.INT24, Kind.INT32, Kind.INT32),
    "int": (T.LONG, Kind.INT32, Kind.INT64),
    "bigint": (T.LONGLONG, Kind.INT64, Kind.DECIMAL),
}
"""Type in the binlog, kind with and without sign."""

BLOBS = {
    **{
        f"{size}{kind}": width
        for size, width in (("tiny", 1), ("", 2), ("medium", 3), ("long", 4))
        for kind in ("blob", "text")
    },
}
"""Bytes of the length before a value."""

SHAPES = ("point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon")
GEOMETRIES = frozenset({"geometry", "geometrycollection", "geomcollection", *SHAPES})
ADDRESSES = {"uuid": 16, "inet6": 16, "inet4": 4}
"""MariaDB's own, in as many bytes."""

TIMES: dict[str, tuple[T, T, Kind]] = {
    "time": (T.TIME2, T.TIME, Kind.TEXT),
    "datetime": (T.DATETIME2, T.DATETIME, Kind.TIMESTAMP),
    "timestamp": (T.TIMESTAMP2, T.TIMESTAMP, Kind.TIMESTAMPTZ),
}
PLAIN = {
    "float": Kind.FLOAT32,
    "double": Kind.FLOAT64,
    "date": Kind.DATE,
    "year": Kind.INT16,
    "json": Kind.JSON,
    "uuid": Kind.UUID,
}
BYTES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}) | GEOMETRIES


@dataclass(frozen=True)
class CatalogColumn:
    """A column as the catalogue has it. ``octets`` of a text or binary type, ``digits`` (precision and scale) of a
    decimal, ``fraction`` digits of a second. ``generated``: its value follows from other columns. ``default``: rows
    that are older than the column need not hold NULL."""

    name: str
    data_type: str
    column_type: str
    nullable: bool
    charset: str = ""
    octets: int = 0
    digits: tuple[int, int] = (0, 0)
    fraction: int = 0
    generated: bool = False
    default: bool = False

    @property
    def unsigned(self) -> bool:
        return "unsigned" in self.column_type

    @property
    def members(self) -> tuple[str, ...]:
        """Of an enum or a set."""
        inner = self.column_type.partition("(")[2].rpartition(")")[0]
        return tuple(part.replace("''", "'") for part in inner[1:-1].split("','")) if inner else ()

    @property
    def column(self) -> Column:
        """Zero dates have no counterpart and become NULL."""
        kind = logical_type(self)
        may_be_null = self.nullable or kind.kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
        return Column(self.name, kind, may_be_null, self.column_type)


def logical_type(column: CatalogColumn) -> LogicalType:
    name = column.data_type
    if name in INTEGERS:
        _, signed, unsigned = INTEGERS[name]
        kind = unsigned if column.unsigned else signed
        return LogicalType(kind, 20, 0) if kind is Kind.DECIMAL else LogicalType(kind)
    if name == "decimal":
        return decimal(*column.digits)
    if name == "bit":
        return LogicalType(Kind.BOOLEAN if column.digits[0] == 1 else Kind.BYTES)
    if name in TIMES:
        return LogicalType(TIMES[name][2])
    return LogicalType(PLAIN.get(name, Kind.BYTES if name in BYTES else Kind.TEXT))


def decimal(precision: int, scale: int) -> LogicalType:
    """Text where no target has so many digits."""
    return LogicalType(Kind.DECIMAL, precision, scale) if precision <= MOST_DIGITS else LogicalType(Kind.TEXT)


def fits(field: Field, column: CatalogColumn, charset: str | None) -> bool:
    """Whether the binlog tells of this very column. ``charset``: that of the field, None where it is not told."""
    name = column.data_type
    signed = field.unsigned is not None and name in (*INTEGERS, "decimal", "float", "double")
    if signed and field.unsigned is not column.unsigned:
        return False
    if charset is not None and column.charset and charset != column.charset:
        return False
    if name in INTEGERS:
        return field.type == INTEGERS[name][0]
    if name == "decimal":
        whole, scale = field.digits
        return field.type == T.NEWDECIMAL and (whole + scale, scale) == column.digits
    if name == "bit":
        return field.type == T.BIT and field.bits == column.digits[0]
    if name in TIMES:
        modern, old, _ = TIMES[name]
        return (field.type == modern and field.meta == column.fraction) or (field.type == old and not column.fraction)
    if name in ("enum", "set"):
        told = field.members is None or len(field.members) == len(column.members)
        return field.type == (T.ENUM if name == "enum" else T.SET) and told
    if name in BLOBS:
        return field.type == T.BLOB and field.meta == BLOBS[name]
    if name in ("char", "binary"):
        return field.type == T.STRING and field.length == column.octets
    if name in ADDRESSES:
        return field.type == T.STRING and field.length == ADDRESSES[name]
    if name in ("varchar", "varbinary"):
        return field.type == T.VARCHAR and field.meta == column.octets
    if name in GEOMETRIES:
        return field.type == T.GEOMETRY
    simple = {"float": T.FLOAT, "double": T.DOUBLE, "date": T.DATE, "year": T.YEAR, "json": T.JSON}
    return field.type == simple.get(name)


def derived(field: Field, charset: str | None) -> CatalogColumn | None:
    """A column that the catalogue has no more, told by the binlog alone. None where that does not tell it."""
    named = {code: name for name, (code, _, _) in INTEGERS.items()}
    if field.type in named:
        if field.unsigned is None:
            return None
        name = named[T(field.type)]
        return _made(field, name, f"{name}{' unsigned' if field.unsigned else ''}")
    for name, (modern, _, _) in TIMES.items():
        if field.type == modern:
            digits = field.meta
            return _made(field, name, f"{name}({digits})" if digits else name, fraction=digits)
    plain = {T.FLOAT: "float", T.DOUBLE: "double", T.DATE: "date", T.YEAR: "year", T.JSON: "json"}
    if field.type in plain:
        return _made(field, plain[T(field.type)], plain[T(field.type)])
    if field.type == T.GEOMETRY:
        return _made(field, "geometry", "geometry")
    if field.type == T.NEWDECIMAL:
        whole, scale = field.digits
        return _made(field, "decimal", f"decimal({whole + scale},{scale})", digits=(whole + scale, scale))
    if field.type == T.BIT:
        return _made(field, "bit", f"bit({field.bits})", digits=(field.bits, 0))
    if charset is None:
        return None
    if field.type in (T.ENUM, T.SET):
        name = "enum" if field.type == T.ENUM else "set"
        return _made(field, name, name, charset=charset)
    kinds = ("binary", "varbinary", "blob") if charset == BINARY else ("char", "varchar", "text")
    name = kinds[{T.STRING: 0, T.VARCHAR: 1}.get(T(field.type), 2)]
    size = field.length if field.type == T.STRING else field.meta
    return _made(field, name, name, charset="" if charset == BINARY else charset, octets=size)


def _made(field: Field, data_type: str, column_type: str, **more: object) -> CatalogColumn:
    return CatalogColumn(field.name, data_type, column_type, True, default=True, **more)  # type: ignore[arg-type]


SIZED = ("char", "varchar", "binary", "varbinary", "bit")
SIZES = ("tinyint", "smallint", "mediumint", "int", "bigint")


def keeps_values(before: str, now: CatalogColumn) -> bool:
    """Whether every value of a column of type ``before`` is the same one in ``now``: no shorter text, no fewer digits
    of a second, no member gone. Types that differ in kind are compared elsewhere."""
    name, _, rest = before.partition("(")
    name, rest = name.split(" ")[0], rest.rpartition(")")[0]
    new, _, size = now.column_type.partition("(")
    new, size = new.split(" ")[0], size.rpartition(")")[0]
    if name in SIZES and new in SIZES:
        return SIZES.index(name) <= SIZES.index(new)
    if name != new or rest == size or (not size and name not in TIMES):
        return True
    if name in ("enum", "set"):
        then = CatalogColumn("", name, before, True).members
        return now.members[: len(then)] == then
    if name in (*TIMES, *SIZED) and (rest or "0").isdecimal() and (size or "0").isdecimal():
        return int(rest or 0) <= int(size or 0)
    return True
