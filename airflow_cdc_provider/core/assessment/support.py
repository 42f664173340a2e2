"""The assessment of a replicator: per table and column the types on both sides, and whether it can be copied."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from airflow_cdc_provider.core.assessment.copy_rate import CopyRate
from airflow_cdc_provider.core.table.table_size import UNKNOWN_SIZE, TableSize


class Support(StrEnum):
    """``YES``: every value is copied. ``PARTIAL``: of a column, some values stop the table; of a table, some columns
    are not ``YES``. ``NO``: it is not copied until a problem is solved."""

    YES = "YES"
    PARTIAL = "PARTIAL"
    NO = "NO"


@dataclass(frozen=True)
class Finding:
    """Why something is not ``YES``, and what to do. ``code``: of the problem that ``check`` reports; empty for values
    that the copy cannot hold, which are no problem until a row has one."""

    code: str
    reason: str
    suggestion: str

    def __str__(self) -> str:
        return f"{self.code} {self.reason}".lstrip()


@dataclass(frozen=True)
class ColumnAssessment:
    """``source_type``: in the source's words. ``target_type``: in the target's. ``key``: it belongs to the key."""

    name: str
    source_type: str
    target_type: str
    nullable: bool
    key: bool
    support: Support
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class TableAssessment:
    """``target``: the name of the copy. ``findings``: about the table as a whole; those of its columns are theirs.
    ``excluded``: columns that the definition omits. ``copy_s``: estimated seconds of the first copy, None if
    unknown."""

    table: str
    target: str
    support: Support
    columns: tuple[ColumnAssessment, ...] = ()
    findings: tuple[Finding, ...] = ()
    excluded: tuple[str, ...] = ()
    size: TableSize = UNKNOWN_SIZE
    copy_s: float | None = None

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns if column.key)

    def with_support(self, *support: Support) -> tuple[ColumnAssessment, ...]:
        return tuple(column for column in self.columns if column.support in support)


@dataclass(frozen=True)
class ReplicatorAssessment:
    """``findings``: about source, target or definition as a whole. ``rate``: that of the estimated copy times, None if
    no rate is known for the source. ``sizes_unknown``: why the source gave no sizes, empty if it did."""

    replicator: str
    tables: tuple[TableAssessment, ...]
    findings: tuple[Finding, ...] = ()
    rate: CopyRate | None = None
    sizes_unknown: str = ""

    @property
    def ready(self) -> bool:
        """Whether ``check`` reports no problem of source, target and definition."""
        found = [*self.findings, *(finding for table in self.tables for finding in _all_findings(table))]
        return not any(finding.code for finding in found)


def _all_findings(table: TableAssessment) -> tuple[Finding, ...]:
    return (*table.findings, *(finding for column in table.columns for finding in column.findings))
