"""Error numbers of Snowflake, by what they mean, beside those that the target itself handles."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_cdc_provider.core.connections.error_classes import (
    STATEMENT,
    UNKNOWN,
    Meaning,
    limit,
    permanent,
    permission,
    retry,
)

ERRORS: Mapping[str, Meaning] = {
    **retry("604 607 608 612 625 904 90105 250003 300002 390111 390112 390114"),
    **limit("630 631", "raise STATEMENT_TIMEOUT_IN_SECONDS of the warehouse"),
    **limit("90073 90064", "raise the quota of the warehouse's resource monitor"),
    **permanent("1003 2140 2141 2049 2262", STATEMENT),
    **permission("3001 3003 3540 3541"),
}


def meaning(number: int) -> Meaning:
    return ERRORS.get(str(number), UNKNOWN)
