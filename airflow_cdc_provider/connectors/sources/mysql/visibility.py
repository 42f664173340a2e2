"""Waits until transactions in the binlog are visible to queries: a server logs a transaction before it commits it."""

from __future__ import annotations

import re
from typing import Any

from airflow_cdc_provider.connectors.sources.mysql.catalog import fetch_all, read_variables
from airflow_cdc_provider.connectors.sources.mysql.client import MysqlClient
from airflow_cdc_provider.connectors.sources.mysql.server_settings import COMMIT_ORDER, setting_problems
from airflow_cdc_provider.core.errors import SourceUnavailable, raise_problems

SETTLE_LIMIT_S = 60
OWNER = re.compile(r"#\d+")


def require_commit_order(connection: Any, client: MysqlClient) -> None:
    """MySQL only. Raises CheckFailed (SRC095) if transactions cannot be waited for: they have no ids, or they become
    visible in another order than that of the binlog."""
    variables = read_variables(connection, *COMMIT_ORDER)
    raise_problems(setting_problems(variables, COMMIT_ORDER, client.address))


def wait_for_logged(connection: Any, client: MysqlClient) -> None:
    """MySQL only: waits for all transactions that are in the binlog now. One that is logged and not yet visible belongs
    to the session that commits it. Raises SourceUnavailable (CPY007)."""
    ((owned,),) = fetch_all(connection, "SELECT @@GLOBAL.gtid_owned")
    gtids = OWNER.sub("", str(owned))
    if not gtids:
        return
    ((timed_out,),) = fetch_all(connection, "SELECT WAIT_FOR_EXECUTED_GTID_SET(%s, %s)", (gtids, SETTLE_LIMIT_S))
    if timed_out:
        raise not_visible(client, f"{gtids} is not executed after {SETTLE_LIMIT_S} s")


def not_visible(client: MysqlClient, found: str) -> SourceUnavailable:
    return SourceUnavailable.of(
        "CPY007",
        "a transaction is in the binlog and not yet visible to queries",
        where=client.address,
        found=found,
        do="check for a replica that a semi-synchronous commit waits for; the next run tries again",
        data="nothing was written",
    )
