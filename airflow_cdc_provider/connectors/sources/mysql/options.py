"""The YAML keys of a MySQL or MariaDB source."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.fields import doc

SERVER_IDS = 1 << 31


@dataclass(frozen=True)
class MysqlOptions:
    keeps_texts: ClassVar[bool] = True
    databases: tuple[str, ...] = doc(
        "Databases whose tables can be copied; by default all that the login can see.", tuple, non_empty=True
    )
    server_id: int = doc(
        "Replica server_id of the replicator; the next number is used, too. Both must be unused by any server or "
        "replica. Derived from the name by default.",
        0,
        minimum=0,
        maximum=(1 << 32) - 2,
    )


def read_options(options: Mapping[str, Any], replicator: str) -> MysqlOptions:
    """The options with ``server_id`` filled in: stable for a name, even, and in the upper half of the range, where
    servers are rarely numbered."""
    given = from_plain(MysqlOptions, dict(options))
    if given.server_id:
        return given
    digest = hashlib.sha256(f"cdc:{replicator}".encode()).digest()
    return replace(given, server_id=SERVER_IDS + int.from_bytes(digest[:4]) % (SERVER_IDS // 2) * 2)
