"""InnoDB's ids of tables, by which a renamed table is found. A statement that rebuilds a table gives it another id.

Only a login with PROCESS can read them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from airflow_cdc_provider.connectors.sources.mysql.catalog import fetch_all, read_server, read_user
from airflow_cdc_provider.core.connections.mysql_errors import MISSING_PRIVILEGE
from airflow_cdc_provider.core.connections.mysql_session import error_code
from airflow_cdc_provider.core.errors import Problem, SourceUnavailable
from airflow_cdc_provider.core.table.identity import THE_TABLE, TableIdentity, TablePartition
from airflow_cdc_provider.core.table.source_names import table_name

IDS = "SELECT name, table_id FROM information_schema.{view} {where} ORDER BY table_id"
IN_DATABASES = "WHERE SUBSTRING_INDEX(name, '/', 1) IN %s"

CODE_POINT = re.compile("@([0-9a-f]{4})")
"""InnoDB writes names as those of files: most characters other than letters and digits of ASCII as code points, letters
of Latin, Greek and Cyrillic by a table of its own, which MySQL does not show. It adds "#" and the name of a partition.
"""


def read_identities(connection: Any, databases: Collection[str] = ()) -> dict[str, TableIdentity] | None:
    """``database.table`` → identity, of the tables whose names can be read, in all databases if none is given. None if
    the login may not read them."""
    where, parameters = (IN_DATABASES, [list(map(_file, databases))]) if databases else ("", [])
    view = "innodb_sys_tables" if read_server(connection).is_mariadb else "innodb_tables"
    try:
        found = fetch_all(connection, IDS.format(view=view, where=where), parameters)
    # The driver is imported by the client only.
    except Exception as error:
        if error_code(error) in MISSING_PRIVILEGE:
            return None
        raise
    ids = defaultdict[str, list[str]](list)
    for file, number in found:
        if name := _name(str(file).partition("#")[0]):
            ids[name].append(str(number))
    return {name: _identity(name, numbers) for name, numbers in ids.items()}


def names_now(connection: Any, tables: Mapping[str, TableIdentity]) -> dict[str, str] | None:
    """``tables``: by any names. The names that they have now, without those that are not found; None if the login may
    not read them."""
    identities = read_identities(connection)
    if identities is None:
        return None
    by_id = {_id(identity): name for name, identity in identities.items()}
    return {table: by_id[_id(identity)] for table, identity in tables.items() if _id(identity) in by_id}


def hidden_identities(connection: Any, address: str) -> Problem | None:
    """The privilege that the login lacks to read them."""
    if read_identities(connection, ["mysql"]) is not None:
        return None
    user = read_user(connection)
    return Problem(
        "SRC139",
        "renamed tables are not found, and count as dropped",
        address,
        found=f"login {user} lacks PROCESS",
        allowed="PROCESS, or `rename: stop`",
        do=f"GRANT PROCESS ON *.* TO {user};",
    )


def _id(identity: TableIdentity) -> str:
    return identity.partitions[THE_TABLE].file


def _name(file: str) -> str:
    """``database.table``; empty if the name cannot be read."""
    if "@" in CODE_POINT.sub("", file):
        return ""
    return table_name(*(CODE_POINT.sub(lambda match: chr(int(match[1], 16)), part) for part in file.split("/", 1)))


def _file(name: str) -> str:
    return re.sub(r"[^0-9A-Za-z_]", lambda match: f"@{ord(match[0]):04x}", name)


def _identity(table: str, ids: Sequence[str]) -> TableIdentity:
    return TableIdentity("", {}, 0, partitions={THE_TABLE: TablePartition(table, ",".join(ids))})


def renamed_meanwhile(tables: Sequence[str], address: str) -> SourceUnavailable:
    """``tables``: those that are not found any more, by the names of their copies."""
    return SourceUnavailable.of(
        "SRC138",
        "tables are renamed or dropped while their names are read",
        ", ".join([address, *tables]),
        do="nothing: the next run reads them again",
        data="the changes are in the binlog",
    )
