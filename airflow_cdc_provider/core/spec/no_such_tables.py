"""Rules that name no table of the source, and the spelling of the tables that they may mean. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.nearest import abbreviated, did_you_mean
from airflow_cdc_provider.core.table.source_names import without_quotes

NO_SUCH_TABLE = "DEF041"
OTHER_QUOTES = "tables with other double quotes: a part of a name that has a dot is in quotes, others are not"


def no_such_table(table: str, known: Iterable[str]) -> Problem:
    spelled = sorted(name for name in known if without_quotes(name) == without_quotes(table))
    instead = " or ".join(f"`source: {_in_yaml(name)}`" for name in spelled)
    return Problem(
        NO_SUCH_TABLE,
        f"the source has no table {table}",
        where=table,
        found=OTHER_QUOTES if spelled else "no such table, or no permission to see it",
        allowed=", ".join(spelled),
        do=f"write {instead}"
        if spelled
        else did_you_mean(table, known) or "create it, grant access to it, or remove it from `tables`",
    )


def no_match(pattern: str, spelled: Sequence[str]) -> Problem:
    """``spelled``: the tables that it would match without quotes."""
    return Problem(
        "DEF023",
        f"pattern {pattern} matches no table",
        where=pattern,
        found=OTHER_QUOTES if spelled else "no match among the tables that the connection can see",
        allowed=abbreviated(sorted(spelled)),
        do="write the pattern with these quotes" if spelled else "correct the pattern or grant access to the tables",
    )


def _in_yaml(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"
