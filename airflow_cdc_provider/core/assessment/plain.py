"""An assessment as plain JSON: the command line and the API print the same."""

from __future__ import annotations

from typing import Any

from airflow_cdc_provider.core.assessment.support import ReplicatorAssessment, Support, TableAssessment
from airflow_cdc_provider.core.serde import to_plain


def plain_assessment(assessment: ReplicatorAssessment) -> dict[str, Any]:
    return {
        "replicator": assessment.replicator,
        "ready": assessment.ready,
        "tables": [_plain_table(table) for table in assessment.tables],
        "findings": to_plain(assessment.findings),
        "rate": to_plain(assessment.rate),
        "sizes_unknown": assessment.sizes_unknown,
    }


def _plain_table(table: TableAssessment) -> dict[str, Any]:
    return {
        "table": table.table,
        "target": table.target,
        "support": table.support.value,
        "key": list(table.key),
        "rows": table.size.rows,
        "bytes": table.size.bytes,
        "copy_s": table.copy_s,
        "columns_count": len(table.columns),
        "columns_not_supported": len(table.with_support(Support.NO)),
        "columns_partially_supported": len(table.with_support(Support.PARTIAL)),
        "findings": to_plain(table.findings),
        "excluded": list(table.excluded),
        "columns": to_plain(table.columns),
    }
