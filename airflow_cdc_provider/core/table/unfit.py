"""Why the table of a copy takes no changes as it is."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_cdc_provider.core.errors import Problem


@dataclass(frozen=True)
class Unfit:
    """``copy_helps``: the table of another copy would not have the problem."""

    problem: Problem
    copy_helps: bool = False
