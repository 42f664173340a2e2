"""What a source has beside tables: views, sequences, parts of tables. Pure.

A rule that names one is refused. A pattern selects tables, and what it leaves out is reported.
"""

from __future__ import annotations

from dataclasses import dataclass

from airflow_cdc_provider.core.errors import Problem

NOT_COPIED = "SRC150"
OF_PATTERN = "nothing, if its rows are not needed; else copy the tables from which it has them"


@dataclass(frozen=True)
class OtherKind:
    """``what``: with its article. ``within``: the table that has its rows, too; empty if there is none."""

    what: str
    within: str = ""


def not_copied(name: str, kind: OtherKind, do: str = "remove it from `tables`, or name a table") -> Problem:
    return Problem(
        NOT_COPIED,
        f"{name} is {kind.what}, which is not copied",
        where=name,
        found=f"{kind.what}{f' of {kind.within}' if kind.within else ''}",
        allowed="tables",
        do=f"name {kind.within} instead" if kind.within else do,
        table=name,
    )
