"""Parquet files of the stand-in for Redshift: what COPY reads, and what UNLOAD writes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet

STORED = {
    pa.bool_(): "boolean",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.string(): "bpchar",
    pa.binary(): "bytea",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp without time zone",
}
"""What COPY loads into which type of PostgreSQL."""

FLOATS, TEXTS, INTEGERS = (700, 701), (25, 705, 1042, 1043), (20, 21, 23)


class Refused(Exception):
    """Args: message, state, detail."""


@cache
def store() -> pyarrow.fs.S3FileSystem:
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"  # the client would wait for an address that is not there
    given = json.loads(Path(sys.argv[3]).read_text(encoding="utf-8"))
    scheme, _, host = given["endpoint"].partition("://")
    return pyarrow.fs.S3FileSystem(
        access_key=given["key"],
        secret_key=given["secret"],
        endpoint_override=host,
        scheme=scheme,
        region="us-east-1",
    )


def size(url: str) -> int:
    found: Any = store().get_file_info(url.removeprefix("s3://"))
    return int(found.size) if found.is_file else -1


def read_json(url: str) -> Any:
    if size(url) < 0:
        raise Refused("The specified S3 prefix does not exist", "XX000", url)
    with store().open_input_stream(url.removeprefix("s3://")) as content:
        return json.loads(content.read())


def file_rows(entry: dict[str, Any], kinds: list[str]) -> Iterator[bytes]:
    """In the text format of COPY."""
    url = entry["url"]
    if any(part.startswith(("_", ".")) for part in url.removeprefix("s3://").split("/")):
        raise Refused(f"a hidden file: {url}", "XX000", "")
    if size(url) != entry["meta"]["content_length"]:
        raise Refused(f"no file of this length: {url}", "XX000", "")
    with store().open_input_file(url.removeprefix("s3://")) as content:
        table = pyarrow.parquet.read_table(content)
    if table.num_columns != len(kinds):
        raise Refused(f"the table has {len(kinds)} columns, the file {table.num_columns}", "XX000", "")
    for field, kind in zip(table.schema, kinds, strict=True):
        fits = f"numeric({field.type.precision},{field.type.scale})" if pa.types.is_decimal(field.type) else ""
        if kind != (fits or STORED.get(field.type)):
            raise Refused(f"incompatible Parquet schema for {field.name}: {field.type} for {kind}", "XX000", "")
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        yield "\t".join(map(field_text, row)).encode() + b"\n"


def field_text(value: Any) -> str:
    if value is None:
        return "\\N"
    if isinstance(value, bytes):
        return f"\\\\x{value.hex()}"
    text = "t" if value is True else "f" if value is False else format(value, "f") if is_decimal(value) else str(value)
    for one, other in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")):
        text = text.replace(one, other)
    return text


def is_decimal(value: Any) -> bool:
    return type(value).__name__ == "Decimal"


def arrow_column(oid: int, values: list[str | None]) -> pa.Array:
    if oid in FLOATS:
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    if oid in INTEGERS:
        return pa.array([None if value is None else int(value) for value in values], pa.int64())
    if oid not in TEXTS:
        raise Refused(f"UNLOAD to Parquet of type {oid}", "0A000", "")
    return pa.array(values, pa.string())


def write_result(url: str, kinds: list[tuple[str, int]], rows: list[list[str | None]]) -> int:
    """Two files and their manifest. ``kinds``: name and type of each column. Returns the number of rows."""
    columns = [arrow_column(oid, [row[n] for row in rows]) for n, (_, oid) in enumerate(kinds)]
    table = pa.table(columns, names=[f"{name}_{n}" for n, (name, _) in enumerate(kinds)])
    half, entries = (table.num_rows + 1) // 2, []
    for number, part in enumerate((table.slice(0, half), table.slice(half))):
        if part.num_rows:
            file = f"{url}{number:04}_part_00.parquet"
            with store().open_output_stream(file.removeprefix("s3://")) as output:
                pyarrow.parquet.write_table(part, output)
            entries.append({"url": file, "meta": {"content_length": size(file)}})
    with store().open_output_stream(f"{url}manifest".removeprefix("s3://")) as output:
        output.write(json.dumps({"entries": entries}).encode())
    return len(rows)
