"""Writes data files of a Delta table, with their statistics."""

from __future__ import annotations

import contextlib
import json
import re
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_cdc_provider.core.errors import StagingUnavailable, TargetUnavailable
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.staging.file_output import NewFile, OutputStream
from airflow_cdc_provider.staging.store import Store
from airflow_cdc_provider.targets.delta.names import FILE_PREFIX

GROUP_ROWS = 64 * 1024
"""Small row groups, so that a key lookup reads few rows."""

PREFIX = 32
"""Length of texts in statistics; a maximum that is cut ends with the highest character."""
TIGHT = re.compile(r'"tightBounds"\s*:\s*(true|false)\s*,|,\s*"tightBounds"\s*:\s*(true|false)')
HIGHEST = "\U0010ffff"


class DataFileWriter:
    """One new file. ``high_cardinality``: the columns written without a dictionary. A file that is not closed belongs
    to no table. Raises TargetUnavailable (TGT025)."""

    def __init__(
        self,
        store: Store,
        table: str,
        columns: pa.Schema,
        statistics_columns: Sequence[str],
        high_cardinality: Collection[str] = (),
    ) -> None:
        self._path = f"{FILE_PREFIX}{uuid.uuid4()}.snappy.parquet"
        with_dictionary = [name for name in columns.names if name not in high_cardinality]
        begin = partial(
            pq.ParquetWriter, schema=columns, compression="snappy", store_schema=False, use_dictionary=with_dictionary
        )
        self._file = NewFile(_TargetFile(store, f"{table}/{self._path}"), begin)
        self._statistics = _ColumnStatistics(columns, statistics_columns)

    @property
    def bytes(self) -> int:
        return self._file.sink.bytes

    def write(self, rows: pa.Table) -> None:
        self._file.writer.write_table(rows, row_group_size=GROUP_ROWS)
        self._statistics.add(rows)

    def close(self) -> dict[str, Any]:
        """Returns the ``add`` action."""
        self._file.close()
        return {
            "path": self._path,
            "partitionValues": {},
            "size": self._file.sink.bytes,
            "modificationTime": time.time_ns() // 1_000_000,
            "dataChange": True,
            "stats": self._statistics.text(),
        }

    def discard(self) -> None:
        self._file.discard()


def write_rows(store: Store, table: str, rows: pa.Table, statistics_columns: Sequence[str]) -> dict[str, Any]:
    """Writes all rows into one new file and returns its ``add`` action."""
    file = DataFileWriter(store, table, rows.schema, statistics_columns)
    try:
        file.write(rows)
        return file.close()
    except BaseException:
        file.discard()
        raise


def with_vector(add: dict[str, Any], descriptor: dict[str, Any]) -> dict[str, Any]:
    """The same file with rows marked deleted. Its bounds are no longer tight: they may be those of marked rows."""
    stats = TIGHT.sub("", str(add["stats"])).replace("{", '{"tightBounds":false,', 1)
    return {**add, "deletionVector": descriptor, "stats": stats, "dataChange": True}


class _TargetFile(OutputStream):
    def write(self, content: bytes) -> int:
        with self.guarded():
            failpoint("target.write")
        return super().write(content)

    @contextlib.contextmanager
    def guarded(self) -> Iterator[None]:
        try:
            yield
        except (OSError, StagingUnavailable) as error:
            raise TargetUnavailable.of(
                "TGT025",
                "a file of the target cannot be written",
                where=self.where,
                found=getattr(error, "strerror", None) or f"{type(error).__name__}: {error}",
                do="free space, or correct permissions or network; the next attempt writes the file again",
                data="the table is unchanged",
            ) from error


class _ColumnStatistics:
    """The number of rows, and NULLs and bounds per column. A copy that shares its table may lack columns of others."""

    def __init__(self, columns: pa.Schema, statistics_columns: Sequence[str]) -> None:
        self._rows = 0
        kinds = {name: columns.field(name).type for name in statistics_columns if name in columns.names}
        self._nulls = dict.fromkeys(kinds, 0)
        self._bounds = dict[str, tuple[Any, Any]]()
        self._formatters = {name: formatter for name, kind in kinds.items() if (formatter := _formatter(kind))}

    def add(self, rows: pa.Table) -> None:
        self._rows += len(rows)
        for name in self._nulls:
            column = rows[name]
            self._nulls[name] += column.null_count
            if name not in self._formatters or column.null_count == len(column):
                continue
            low, high = pc.min_max(column).as_py().values()
            known = self._bounds.get(name, (low, high))
            self._bounds[name] = min(known[0], low), max(known[1], high)

    def text(self) -> str:
        """As JSON. Not by ``json.dumps``, which cannot write decimals as numbers."""
        minima, maxima = list[str](), list[str]()
        for name, (low, high) in self._bounds.items():
            formatter = self._formatters[name]
            minima.append(f"{json.dumps(name)}:{formatter(low, False)}")
            maxima.append(f"{json.dumps(name)}:{formatter(high, True)}")
        nulls = [f"{json.dumps(name)}:{number}" for name, number in self._nulls.items()]
        parts = [f'"minValues":{{{",".join(minima)}}}', f'"maxValues":{{{",".join(maxima)}}}']
        return f'{{"numRecords":{self._rows},{",".join(parts)},"nullCount":{{{",".join(nulls)}}},"tightBounds":true}}'


def _formatter(kind: pa.DataType) -> Callable[[Any, bool], str] | None:
    """Writes the minimum or maximum of a type as JSON. None for types without bounds, among them floats, since NaN has
    no order."""
    if pa.types.is_integer(kind):
        return lambda value, _: str(value)
    if pa.types.is_decimal(kind):
        return lambda value, _: _plain(value)
    if pa.types.is_date(kind):
        return lambda value, _: f'"{value.isoformat()}"'
    if pa.types.is_timestamp(kind):
        zone = "Z" if kind.tz else ""
        return lambda value, _: f'"{value.replace(tzinfo=None).isoformat(timespec="microseconds")}{zone}"'
    if pa.types.is_string(kind):
        return _text
    return None


def _plain(value: Decimal) -> str:
    return format(value, "f")


def _text(value: str, high: bool) -> str:
    cut = value[:PREFIX] + (HIGHEST if high and len(value) > PREFIX else "")
    return json.dumps(cut, ensure_ascii=False)
