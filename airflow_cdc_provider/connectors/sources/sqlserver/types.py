"""Columns of SQL Server: their logical types, and the SQL expressions by which every query reads their values. Pure.

Copies and change tables are read with the same expressions, so a value has the same form in both. Times, texts and
identifiers are converted by the server, not by the driver.
"""

from __future__ import annotations

from dataclasses import dataclass

from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType

UNICODE_CHARACTERS = 4000
"""The longest ``nvarchar`` that is not ``nvarchar(max)``."""

KINDS: dict[str, Kind] = {
    "bit": Kind.BOOLEAN,
    "tinyint": Kind.INT16,
    "smallint": Kind.INT16,
    "int": Kind.INT32,
    "bigint": Kind.INT64,
    "decimal": Kind.DECIMAL,
    "numeric": Kind.DECIMAL,
    "money": Kind.DECIMAL,
    "smallmoney": Kind.DECIMAL,
    "real": Kind.FLOAT32,
    "float": Kind.FLOAT64,
    "date": Kind.DATE,
    "time": Kind.TEXT,
    "smalldatetime": Kind.TIMESTAMP,
    "datetime": Kind.TIMESTAMP,
    "datetime2": Kind.TIMESTAMP,
    "datetimeoffset": Kind.TIMESTAMPTZ,
    "char": Kind.TEXT,
    "varchar": Kind.TEXT,
    "text": Kind.TEXT,
    "nchar": Kind.TEXT,
    "nvarchar": Kind.TEXT,
    "ntext": Kind.TEXT,
    "xml": Kind.TEXT,
    "hierarchyid": Kind.TEXT,
    "uniqueidentifier": Kind.UUID,
    "binary": Kind.BYTES,
    "varbinary": Kind.BYTES,
    "image": Kind.BYTES,
    "timestamp": Kind.BYTES,
    "geometry": Kind.BYTES,
    "geography": Kind.BYTES,
}
"""All types that can be copied. The catalog's name of ``rowversion`` is ``timestamp``."""

EXPRESSIONS: dict[str, str] = {
    "money": "CONVERT(decimal(19, 4), {0})",
    "smallmoney": "CONVERT(decimal(10, 4), {0})",
    "date": "CONVERT(varchar(10), {0}, 23)",
    "time": "CONVERT(varchar(16), {0}, 121)",
    "smalldatetime": "CONVERT(varchar(23), {0}, 121)",
    "datetime": "CONVERT(varchar(23), {0}, 121)",
    "datetime2": "CONVERT(varchar(27), {0}, 121)",
    "datetimeoffset": "CONVERT(varchar(34), {0}, 121)",
    "uniqueidentifier": "CONVERT(char(36), {0})",
    "timestamp": "CONVERT(binary(8), {0})",
    "text": "CONVERT(nvarchar(max), {0})",
    "ntext": "CONVERT(nvarchar(max), {0})",
    "xml": "CONVERT(nvarchar(max), {0})",
    "hierarchyid": "CONVERT(nvarchar(4000), {0})",
    "image": "CONVERT(varbinary(max), {0})",
    "geometry": "CONVERT(varbinary(max), {0})",
    "geography": "CONVERT(varbinary(max), {0})",
}
"""The other types are read as they are, texts of a code page as Unicode. Style 121 is ODBC's canonical form, style 23
that of ISO 8601."""

NEVER_IN_BEFORE = frozenset({"text", "ntext", "image"})
"""Types that are always NULL in the row of a delete and in the row before an update."""

ALWAYS_LARGE = NEVER_IN_BEFORE | {"xml", "geometry", "geography"}
"""Types that are stored like ``varchar(max)``."""

CODE_PAGE_TEXTS = frozenset({"char", "varchar", "text"})
PRECISE_TIMES = frozenset({"time", "datetime2", "datetimeoffset"})


@dataclass(frozen=True)
class SqlColumn:
    """A column of the catalog. ``number``: its ``column_id``. ``type``: the name of its system type. ``length``: in
    bytes, -1 for ``max``. ``filled``: it has a default, or cannot be NULL, so older rows may have a value in it.
    ``special``: a column set, or an encrypted column. ``ordinal``: in the update mask, 0 in the table itself."""

    number: int
    name: str
    type: str
    length: int = 0
    precision: int = 0
    scale: int = 0
    nullable: bool = True
    collation: str = ""
    computed: bool = False
    filled: bool = False
    special: bool = False
    ordinal: int = 0

    @property
    def supported(self) -> bool:
        return self.type in KINDS and not self.special

    @property
    def large(self) -> bool:
        """Whether its value may be missing in the row of an update that does not change it."""
        return self.type in ALWAYS_LARGE or self.length == -1

    @property
    def native(self) -> str:
        """The type as in a CREATE TABLE statement."""
        match self.type:
            case "decimal" | "numeric":
                return f"{self.type}({self.precision},{self.scale})"
            case "char" | "varchar" | "binary" | "varbinary":
                return f"{self.type}({'max' if self.length == -1 else self.length})"
            case "nchar" | "nvarchar":
                return f"{self.type}({'max' if self.length == -1 else self.length // 2})"
            case name if name in PRECISE_TIMES:
                return f"{self.type}({self.scale})"
            case "float":
                return f"float({self.precision})"
            case "timestamp":
                return "rowversion"
            case _:
                return self.type

    @property
    def column(self) -> Column:
        """The column of a copy; text if the type is not supported."""
        return Column(self.name, logical_type(self), self.nullable, self.native)

    @property
    def expression(self) -> str:
        """The SQL expression that reads it."""
        name = quoted(self.name)
        if self.type in ("char", "varchar"):
            fits = 0 < self.length <= UNICODE_CHARACTERS
            return f"CONVERT(nvarchar({self.length if fits else 'max'}), {name})"
        return EXPRESSIONS.get(self.type, "{0}").replace("{0}", name)


def logical_type(column: SqlColumn) -> LogicalType:
    kind = KINDS.get(column.type, Kind.TEXT)
    if column.type == "money":
        return LogicalType(kind, 19, 4)
    if column.type == "smallmoney":
        return LogicalType(kind, 10, 4)
    return LogicalType(kind, column.precision, column.scale) if kind is Kind.DECIMAL else LogicalType(kind)


def quoted(name: str) -> str:
    return "[" + name.replace("]", "]]") + "]"


def text_literal(text: str) -> str:
    return "N'" + text.replace("'", "''") + "'"
