"""Columns of MySQL and MariaDB as logical types, compared with the columns in a table map. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_cdc_provider.connectors.sources.mysql.table_map import Field, T
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType

MAX_DIGITS = 38
BINARY = "binary"
INTEGERS: dict[str, tuple[T, Kind, Kind]] = {
    "tinyint": (T.TINY, Kind.INT16, Kind.INT16),
    "smallint": (T.SHORT, Kind.INT16, Kind.INT32),
    "mediumint": (T.INT24, Kind.INT32, Kind.INT32),
    "int": (T.LONG, Kind.INT32, Kind.INT64),
    "bigint": (T.LONGLONG, Kind.INT64, Kind.DECIMAL),
}
"""Type in the binlog, kind if signed, kind if unsigned."""

BLOBS = {
    f"{size}{kind}": width
    for size, width in (("tiny", 1), ("", 2), ("medium", 3), ("long", 4))
    for kind in ("blob", "text")
}
"""Bytes of the length before a value."""

SHAPES = ("point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon")
GEOMETRIES = frozenset({"geometry", "geometrycollection", "geomcollection", *SHAPES})
ADDRESSES = {"uuid": 16, "inet6": 16, "inet4": 4}
"""Types of MariaDB and their bytes."""

TIMES: dict[str, tuple[T, T, Kind]] = {
    "time": (T.TIME2, T.TIME, Kind.TEXT),
    "datetime": (T.DATETIME2, T.DATETIME, Kind.TIMESTAMP),
    "timestamp": (T.TIMESTAMP2, T.TIMESTAMP, Kind.TIMESTAMPTZ),
}
OLD_FORMAT = "mariadb-5.3"
"""In the type of a column of ``TIMES`` that MariaDB stores in its former format."""

SIMPLE = {"float": T.FLOAT, "double": T.DOUBLE, "date": T.DATE, "year": T.YEAR, "json": T.JSON, "vector": T.VECTOR}
"""Types of which the type in the binlog shows everything."""

PLAIN = {
    "float": Kind.FLOAT32,
    "double": Kind.FLOAT64,
    "date": Kind.DATE,
    "year": Kind.INT16,
    "json": Kind.JSON,
    "uuid": Kind.UUID,
}
BYTES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "vector"}) | GEOMETRIES


@dataclass(frozen=True)
class CatalogColumn:
    """A column of the catalog. ``octets``: of a text or binary type. ``digits``: precision and scale of a decimal.
    ``fraction``: fractional digits of a second. ``generated``: its value is computed from other columns. ``default``:
    in rows older than the column its value may not be NULL. ``readable``: the login may select it."""

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
    readable: bool = True

    @property
    def unsigned(self) -> bool:
        return "unsigned" in self.column_type

    @property
    def is_compressed(self) -> bool:
        """Of MariaDB: the server stores and logs its values compressed."""
        return self.data_type not in ("enum", "set") and "compressed" in self.column_type

    @property
    def members(self) -> tuple[str, ...]:
        """The members of an enum or a set."""
        inner = self.column_type.partition("(")[2].rpartition(")")[0]
        return tuple(part.replace("''", "'") for part in inner[1:-1].split("','")) if inner else ()

    @property
    def column(self) -> Column:
        """Dates are nullable: no target can represent zero dates, and the copy may have NULL for them."""
        type_ = logical_type(self)
        nullable = self.nullable or type_.kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
        return Column(self.name, type_, nullable, self.column_type)


KNOWN = frozenset({*INTEGERS, *TIMES, *BLOBS, *ADDRESSES, *GEOMETRIES, *SIMPLE}) | frozenset(
    {"decimal", "bit", "enum", "set", "char", "binary", "varchar", "varbinary"}
)


def is_old_fraction(column: CatalogColumn) -> bool:
    """Whether MariaDB stores the column as it did before 10.1, or with ``mysql56_temporal_format = OFF``, in a number
    of bytes that the binlog does not show."""
    return column.fraction > 0 and OLD_FORMAT in column.column_type


def is_known(column: CatalogColumn, mariadb: bool) -> bool:
    """Whether the values of the type are read from the binlog. MariaDB's vector is not MySQL's."""
    return column.data_type in KNOWN and not (mariadb and column.data_type == "vector")


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
    """Text if no target has so many digits."""
    return LogicalType(Kind.DECIMAL, precision, scale) if precision <= MAX_DIGITS else LogicalType(Kind.TEXT)


def matches_field(field: Field, column: CatalogColumn, charset: str | None) -> bool:
    """Whether the field of a table map has the column's type. ``charset``: that of the field, None if unknown."""
    name = column.data_type
    has_sign = field.unsigned is not None and name in (*INTEGERS, "decimal", "float", "double")
    if has_sign and field.unsigned is not column.unsigned:
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
        same_members = field.members is None or len(field.members) == len(column.members)
        return field.type == (T.ENUM if name == "enum" else T.SET) and same_members
    if name in BLOBS:
        return field.type == (T.BLOB_COMPRESSED if column.is_compressed else T.BLOB) and field.meta == BLOBS[name]
    if name in ("char", "binary"):
        return field.type == T.STRING and field.length == column.octets
    if name in ADDRESSES:
        return field.type == T.STRING and field.length == ADDRESSES[name]
    if name in ("varchar", "varbinary") and column.is_compressed:
        return field.type == T.VARCHAR_COMPRESSED and field.meta == column.octets + 1
    if name in ("varchar", "varbinary"):
        return field.type == T.VARCHAR and field.meta == column.octets
    if name in GEOMETRIES:
        return field.type == T.GEOMETRY
    return field.type == SIMPLE.get(name)


def column_from_field(field: Field, charset: str | None) -> CatalogColumn | None:
    """The column that a table map describes, for columns that the catalog has no longer. None if the metadata of the
    table map does not determine the type."""
    integers = {code: name for name, (code, _, _) in INTEGERS.items()}
    if field.type in integers:
        if field.unsigned is None:
            return None
        name = integers[T(field.type)]
        return _column(field, name, f"{name}{' unsigned' if field.unsigned else ''}")
    for name, (modern, _, _) in TIMES.items():
        if field.type == modern:
            digits = field.meta
            return _column(field, name, f"{name}({digits})" if digits else name, fraction=digits)
    for name, code in SIMPLE.items():
        if field.type == code:
            return _column(field, name, name)
    if field.type == T.GEOMETRY:
        return _column(field, "geometry", "geometry")
    if field.type == T.NEWDECIMAL:
        whole, scale = field.digits
        return _column(field, "decimal", f"decimal({whole + scale},{scale})", digits=(whole + scale, scale))
    if field.type == T.BIT:
        return _column(field, "bit", f"bit({field.bits})", digits=(field.bits, 0))
    if charset is None:
        return None
    if field.type in (T.ENUM, T.SET):
        name = "enum" if field.type == T.ENUM else "set"
        return _column(field, name, name, charset=charset)
    names = ("binary", "varbinary", "blob") if charset == BINARY else ("char", "varchar", "text")
    name = names[{T.STRING: 0, T.VARCHAR: 1, T.VARCHAR_COMPRESSED: 1}.get(T(field.type), 2)]
    size = field.length if field.type == T.STRING else field.meta
    return _column(field, name, name, charset="" if charset == BINARY else charset, octets=size)


def _column(field: Field, data_type: str, column_type: str, **more: object) -> CatalogColumn:
    return CatalogColumn(field.name, data_type, column_type, True, default=True, **more)  # type: ignore[arg-type]


SIZED = ("char", "varchar", "binary", "varbinary", "bit")
SIZES = ("tinyint", "smallint", "mediumint", "int", "bigint")


def keeps_values(before: str, now: CatalogColumn) -> bool:
    """Whether ``now`` keeps every value of the type ``before``: no shorter text, no fewer digits of a second, no member
    removed. Types with different names are compared in ``column_types``."""
    old_name, _, old_size = before.partition("(")
    old_name, old_size = old_name.split(" ")[0], old_size.rpartition(")")[0]
    name, _, size = now.column_type.partition("(")
    name, size = name.split(" ")[0], size.rpartition(")")[0]
    if old_name in SIZES and name in SIZES:
        return SIZES.index(old_name) <= SIZES.index(name)
    if old_name != name or old_size == size or (not size and name not in TIMES):
        return True
    if name in ("enum", "set"):
        old_members = CatalogColumn("", name, before, True).members
        return now.members[: len(old_members)] == old_members
    if name in (*TIMES, *SIZED) and (old_size or "0").isdecimal() and (size or "0").isdecimal():
        return int(old_size or 0) <= int(size or 0)
    return True
