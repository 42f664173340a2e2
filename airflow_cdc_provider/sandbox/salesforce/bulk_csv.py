"""Rows of a Bulk job as CSV: every value is quoted; null and empty text are the same."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from operator import itemgetter
from typing import Any

from airflow_cdc_provider.sandbox.salesforce.bulk_jobs import Job
from airflow_cdc_provider.sandbox.salesforce.objects import Row
from airflow_cdc_provider.sandbox.salesforce.values import NUMBERS

DELIMITERS = {"COMMA": ",", "TAB": "\t", "PIPE": "|", "SEMICOLON": ";", "CARET": "^", "BACKQUOTE": "`"}
LINE_ENDS = {"LF": "\n", "CRLF": "\r\n"}
Format = Callable[[Any], str]


def csv_text(job: Job, rows: Sequence[Row], now: str, scientific: bool = False) -> bytes:
    """A header line and the rows."""
    out = io.StringIO()
    writer = csv.writer(
        out, delimiter=DELIMITERS[job.delimiter], lineterminator=LINE_ENDS[job.line_end], quoting=csv.QUOTE_ALL
    )
    writer.writerow([field.name for field in job.fields])
    formats = {index: boolean for index, field in enumerate(job.fields) if field.kind == "boolean"}
    write_number = number if scientific else str
    any_type = partial(any_value, write_number)
    formats |= {index: any_type for index, field in enumerate(job.fields) if field.kind == "anyType"}
    if scientific:
        formats |= {index: number for index, field in enumerate(job.fields) if field.kind in NUMBERS}
    cells = _cells(job, rows, now)
    writer.writerows(_formatted(cells, formats) if formats else cells)
    return out.getvalue().encode()


def boolean(value: Any) -> str:
    return "true" if value else "false"


def any_value(write_number: Format, value: Any) -> Any:
    """The text of a value of its own type."""
    if isinstance(value, bool):
        return boolean(value)
    return write_number(value) if isinstance(value, float) else value


def number(value: Any) -> str:
    """Large and very small numbers have an exponent."""
    if value is None:
        return ""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    whole, rest = str(digits[0]), "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{whole}.{rest}E{len(digits) - 1 + int(exponent)}"


def _cells(job: Job, rows: Iterable[Row], now: str) -> Iterable[Sequence[Any]]:
    if any(field.formula for field in job.fields):
        names = [field.name for field in job.fields]
        values = (job.object.values(row, now) for row in rows)
        return ([one[name] for name in names] for one in values)
    slots = [job.object.slots[field.name] for field in job.fields]
    return ([row[slots[0]]] for row in rows) if len(slots) == 1 else map(itemgetter(*slots), rows)


def _formatted(rows: Iterable[Sequence[Any]], formats: Mapping[int, Format]) -> Iterable[Sequence[Any]]:
    for row in rows:
        cells = list(row)
        for index, format_value in formats.items():
            cells[index] = format_value(cells[index])
        yield cells
