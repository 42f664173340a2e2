"""The YAML keys of a SQL Server source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from airflow_cdc_provider.core.spec.fields import doc


@dataclass(frozen=True)
class SqlServerOptions:
    """Never run on a real server; see docs/guides/sqlserver.md."""

    keeps_texts: ClassVar[bool] = True
    schemas: tuple[str, ...] = doc(
        "Schemas whose tables can be copied, in the database of the connection; by default all that the login can "
        "see. Never run on a real SQL Server.",
        tuple,
        non_empty=True,
    )
