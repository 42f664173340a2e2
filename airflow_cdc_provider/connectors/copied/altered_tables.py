"""Tables that are altered between two steps of a copy. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from airflow_cdc_provider.connectors.unrepresentable import UNCHANGED, Unrepresentable
from airflow_cdc_provider.core.errors import SourceUnavailable
from airflow_cdc_provider.core.table.schema import Kind, LogicalType, TableSchema


def altered_meanwhile(table: str, found: str) -> SourceUnavailable:
    return SourceUnavailable.of(
        "CPY012",
        f"{table} was altered during the run",
        where=table,
        found=found,
        do="nothing: the next run reads the table as it is then",
        data=UNCHANGED,
    )


def require_columns(schema: TableSchema, present: Collection[str], others: Iterable[str] = ()) -> None:
    """Raises SourceUnavailable (CPY012) if the table has lost a column that a copy of this schema, or its query
    (``others``), is read from since the run has read the catalog."""
    names = dict.fromkeys([*(column.text_of or column.name for column in schema.columns), *schema.key, *others])
    if missing := [name for name in names if name not in present]:
        raise altered_meanwhile(schema.table, f"no column {', '.join(missing)}")


@contextmanager
def of_type(table: str, name: str, copied: LogicalType, now: LogicalType) -> Iterator[None]:
    """Around the conversion of the values of a column that has the type ``now``. Raises SourceUnavailable (CPY012)
    where they do not fit into the one that it had when the run has read the catalog."""
    try:
        yield
    except Unrepresentable:
        raise
    except (ValueError, TypeError, ArithmeticError) as error:  # those of Arrow are among them
        if now == copied or copied.kind is Kind.TEXT:
            raise
        raise altered_meanwhile(table, f"column {name} has type {now}, and had {copied}: {error}") from error
