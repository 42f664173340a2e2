"""The columns that a target table still has of former ones of its copy, with the types they had. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from airflow_cdc_provider.core.table.schema import Column, TableSchema, parse_type


def former_after(former: Mapping[str, str], before: TableSchema, after: TableSchema) -> dict[str, str]:
    """Types by name, where the target keeps the columns of ``before`` that are not in ``after``."""
    both = {**former, **{column.name: str(column.type) for column in before.columns}}
    return {name: kind for name, kind in both.items() if name not in after.names}


def with_other_types(
    former: Mapping[str, str],
    columns: Sequence[Column],
    column_id: Callable[[str], str],
    stored_as: Callable[[Column], str],
) -> list[str]:
    """Names of those of ``columns`` that are former ones with another type. ``column_id``: equal for names that are one
    to the target. ``stored_as``: the type of a column in the target."""
    types = {column_id(name): stored_as(Column(name, parse_type(kind))) for name, kind in former.items()}
    found = ((column, types.get(column_id(column.name), stored_as(column))) for column in columns)
    return [column.name for column, kind in found if kind != stored_as(column)]
