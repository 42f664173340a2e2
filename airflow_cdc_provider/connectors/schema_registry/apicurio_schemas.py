"""Schemas by the ids that Apicurio's ExtJsonConverter writes, through Apicurio's own interface.

Version 2 of the converter writes global ids, version 3 content ids. A message does not tell which, and both are numbers
from 1 on: two registrations of one schema have one content id and two global ids.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.exact_json import dumps
from airflow_cdc_provider.connectors.schema_registry.client_settings import IDS, USE_ID, address, apicurio_ids
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed

CONFLUENT_INTERFACE = re.compile(r"/apis/ccompat/.*")
OWN_INTERFACE = "/apis/registry/v2"
NOT_FOUND = 404


def connect_schema(connection: ConnectionInfo, number: str, used_by: str, open_client: Callable[[str], Any]) -> str:
    """The text of the schema. ``open_client``: with the address of an interface. Raises CheckFailed: SRC162 if the
    number names two schemas, or may name one that was deleted, and the connection does not say which; SRC163 if the
    registry is not Apicurio's. Passes on the errors of the client."""
    url = address(connection)
    if not CONFLUENT_INTERFACE.search(url):
        raise CheckFailed.of(
            "SRC163",
            "the messages of Apicurio's ExtJsonConverter name schemas of another registry",
            where=f"{url}, schema id {number} of {used_by}",
            found="an address that is not one of Apicurio",
            allowed="https://apicurio.example.com/apis/ccompat/v7",
            do=f"correct the host of connection {connection.connection_id}",
            data="nothing was sealed or skipped; the next run reads the same messages",
        )
    ids = apicurio_ids(connection)
    with open_client(CONFLUENT_INTERFACE.sub(OWN_INTERFACE, url)) as client:
        # The library has no public function for other requests; logins, tokens and certificates are in this client.
        texts = _texts(client._rest_client, [f"ids/{kind}s/{number}" for kind in ids])
    if len(set(texts)) > 1:
        raise CheckFailed.of(
            "SRC162",
            f"the schema id {number} of Apicurio's ExtJsonConverter may name two schemas",
            where=f"{url}, schema id {number} of {used_by}",
            found="different schemas with this global id and this content id, or one only",
            allowed=f"{USE_ID}: {IDS[0]} (version 2 of the converter), {USE_ID}: {IDS[1]} (version 3)",
            do=f"write one of them into the extra of connection {connection.connection_id}",
            data="nothing was sealed or skipped; the next run reads the same messages",
        )
    return texts[0]


def _texts(rest: Any, paths: Sequence[str]) -> list[str]:
    """Empty for a path without a schema. Passes on its error if no path has one."""
    texts, missing = list[str](), list[Exception]()
    for path in paths:
        try:
            texts.append(dumps(rest.get(path)))
        except Exception as error:
            if getattr(error, "http_status_code", None) != NOT_FOUND:
                raise
            texts.append("")
            missing.append(error)
    if len(missing) == len(paths):
        raise missing[0]
    return texts
