"""A new file of rows, and the action that names it."""

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

from airflow_cdc_provider.core.errors import Problem, StagingUnavailable, TargetUnavailable
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.staging.file_output import NewFile, OutputStream
from airflow_cdc_provider.staging.store import Store
from airflow_cdc_provider.targets.delta.names import OUR_FILES

GROUP_ROWS = 64 * 1024
"""Small groups: whoever looks for a key reads few of them."""

PREFIX = 32
"""Texts stand in statistics by so many characters, and a maximum that was cut is closed with the highest one."""
TIGHT = re.compile(r'"tightBounds"\s*:\s*(true|false)\s*,|,\s*"tightBounds"\s*:\s*(true|false)')
HIGHEST = "\U0010ffff"


class DataFileWriter:
    """One file being written. ``measured``: the columns that get statistics. ``high_cardinality``: those written
    without a dictionary. A file that is not closed is part of no table. Raises
    TargetUnavailable (TGT025)."""

    def __init__(
        self,
        store: Store,
        table: str,
        columns: pa.Schema,
        measured: Sequence[str],
        high_cardinality: Collection[str] = (),
    ) -> None:
        self._path = f"{OUR_FILES}{uuid.uuid4()}.snappy.parquet"
        repeating = [name for name in columns.names if name not in high_cardinality]
        begin = partial(
            pq.ParquetWriter, schema=columns, compression="snappy", store_schema=False, use_dictionary=repeating
        )
        self._file = NewFile(_TargetFile(store, f"{table}/{self._path}"), begin)
        self._figures = _Figures(columns, measured)

    @property
    def bytes(self) -> int:
        return self._file.sink.bytes

    def write(self, rows: pa.Table) -> None:
        self._file.writer.write_table(rows, row_group_size=GROUP_ROWS)
        self._figures.take(rows)

    def close(self) -> dict[str, Any]:
        """The ``add`` action."""
        self._file.close()
        return {
            "path": self._path,
            "partitionValues": {},
            "size": self._file.sink.bytes,
            "modificationTime": time.time_ns() // 1_000_000,
            "dataChange": True,
            "stats": self._figures.text(),
        }

    def discard(self) -> None:
        self._file.discard()


def write_rows(store: Store, table: str, rows: pa.Table, measured: Sequence[str]) -> dict[str, Any]:
    """The ``add`` action of a new file with all these rows."""
    file = DataFileWriter(store, table, rows.schema, measured)
    try:
        file.write(rows)
        return file.close()
    except BaseException:
        file.discard()
        raise


def with_vector(add: dict[str, Any], descriptor: dict[str, Any]) -> dict[str, Any]:
    """The same file with rows marked deleted: its minima and maxima may be those of rows that are gone."""
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
            raise TargetUnavailable(
                Problem(
                    "TGT025",
                    "cannot write a file of the target",
                    where=self.where,
                    found=getattr(error, "strerror", None) or f"{type(error).__name__}: {error}",
                    do="free space, or mend permissions or network; the next attempt writes anew",
                    data="the table is as it was",
                )
            ) from error


class _Figures:
    """Rows, and per column its NULLs and its ends."""

    def __init__(self, columns: pa.Schema, measured: Sequence[str]) -> None:
        self._rows = 0
        self._nulls = dict.fromkeys(measured, 0)
        self._ends = dict[str, tuple[Any, Any]]()
        kinds = {name: columns.field(name).type for name in measured}
        self._spelled = {name: spelled for name, kind in kinds.items() if (spelled := _spelled(kind))}

    def take(self, rows: pa.Table) -> None:
        self._rows += len(rows)
        for name in self._nulls:
            column = rows[name]
            self._nulls[name] += column.null_count
            if name not in self._spelled or column.null_count == len(column):
                continue
            low, high = pc.min_max(column).as_py().values()
            known = self._ends.get(name, (low, high))
            self._ends[name] = min(known[0], low), max(known[1], high)

    def text(self) -> str:
        """Written by hand: decimals are numbers of many digits there."""
        minima, maxima = list[str](), list[str]()
        for name, (low, high) in self._ends.items():
            spelled = self._spelled[name]
            minima.append(f"{json.dumps(name)}:{spelled(low, False)}")
            maxima.append(f"{json.dumps(name)}:{spelled(high, True)}")
        nulls = [f"{json.dumps(name)}:{number}" for name, number in self._nulls.items()]
        parts = [f'"minValues":{{{",".join(minima)}}}', f'"maxValues":{{{",".join(maxima)}}}']
        return f'{{"numRecords":{self._rows},{",".join(parts)},"nullCount":{{{",".join(nulls)}}},"tightBounds":true}}'


def _spelled(kind: pa.DataType) -> Callable[[Any, bool], str] | None:
    """How a minimum or maximum of this type is written; None where none is. Floats have none: what is no number has no
    place among them."""
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
