"""Error numbers of SQL Server, by what they mean. From Microsoft's documentation; never seen from a real server."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_cdc_provider.core.connections.error_classes import (
    CHANGED,
    DAMAGED,
    STATEMENT,
    UNKNOWN,
    VALUE,
    Meaning,
    limit,
    permanent,
    permission,
    retry,
)

ERRORS: Mapping[str, Meaning] = {
    **retry("-2 0 64 121 233 596 601 1204 1205 1222 3960 3961 10053 10054 10060 11001 40143 40197 40501 40613 49918"),
    **retry("207 208 4104", CHANGED),
    **limit("701 802 8645 8651 8657", "raise the memory of the server"),
    **limit("1101 1105 9002", "free disk space on the server, or in its log"),
    **limit("10928 10929 17809", "raise the number of sessions or workers of the server"),
    **limit("3906 3908 978", "connect to a database that accepts this statement: it is read-only, or a secondary"),
    **limit("8649", "raise the query governor cost limit of the server"),
    **permanent("241 242 245 295 8114 8115 8152 2628 6522", VALUE),
    **permanent("3952", "ALTER DATABASE … SET ALLOW_SNAPSHOT_ISOLATION ON;"),
    **permanent("823 824 825 605", DAMAGED),
    **permanent("102 156 195 2812 4121", STATEMENT),
    **permanent("911 4064", "name a database that exists in the Airflow connection"),
    **permission("229 230 262 297 300 916 4060 18452 18456 18486 18487 18488"),
}


def meaning(number: int) -> Meaning:
    return ERRORS.get(str(number), UNKNOWN)
