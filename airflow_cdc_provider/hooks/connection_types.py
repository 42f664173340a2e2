"""The connection types of this provider. Their hooks only test a connection: sources, targets and staging read the
fields of a connection whatever its type is.

A test does what ``airflow cdc check`` does with the system when there are no tables yet.
"""

from __future__ import annotations

import json
import logging
import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from airflow.sdk import BaseHook

from airflow_cdc_provider.connectors import SOURCES
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CdcError, CheckFailed, Problem
from airflow_cdc_provider.core.registry import load_class
from airflow_cdc_provider.core.spec.definition import Source, Target
from airflow_cdc_provider.core.storage.locations import ABFSS, GS, PATTERN, S3, parse_location
from airflow_cdc_provider.hooks.connections import TEST_WITH, connection_info, options_of_test
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.local_store import LocalStore
from airflow_cdc_provider.staging.open_store import open_store
from airflow_cdc_provider.staging.store import store_problems
from airflow_cdc_provider.targets import TARGETS

log = logging.getLogger(__name__)

UNDER_TEST = "under test"
"""The id of the connection in messages: Airflow tests a form under a random one."""


class CdcConnectionHook(BaseHook):
    """``test_keys``: the keys that ``test_with`` may have. ``tested``: what a successful test has shown."""

    conn_name_attr = "connection_id"
    test_keys: ClassVar[frozenset[str]] = frozenset()
    tested: ClassVar[str] = ""

    def __init__(self, connection_id: str) -> None:
        super().__init__()
        self.connection_id = connection_id

    def get_conn(self) -> ConnectionInfo:
        return connection_info(self.connection_id)

    def test_connection(self) -> tuple[bool, str]:
        """Whether the system can be used, and all problems if it cannot. The text contains no secret."""
        try:
            options = valid_options(options_of_test(self.connection_id), self.test_keys)
            problems = tuple(self.find_problems(replace(self.get_conn(), connection_id=UNDER_TEST), options))
        except CdcError as error:
            problems = error.problems
        except Exception as error:  # the text of a library may contain a credential
            log.exception("the connection test failed")
            return False, f"the test failed with {type(error).__name__}; the log has the details"
        return not problems, "\n".join(map(str, problems)) or self.tested

    @abstractmethod
    def find_problems(self, connection: ConnectionInfo, options: Mapping[str, Any]) -> Iterable[Problem]: ...


class SalesforceConnectionHook(CdcConnectionHook):
    conn_type = "cdc_salesforce"
    hook_name = "CDC: Salesforce"
    default_conn_name = "cdc_salesforce_default"
    test_keys = frozenset({"api_version", "channel", "environment", "pubsub_endpoint", "pubsub_tls"})
    tested = "logged in; REST and Pub/Sub answer, and the user may subscribe to the channel"

    def find_problems(self, connection: ConnectionInfo, options: Mapping[str, Any]) -> Iterable[Problem]:
        problems: Iterable[Problem] = _open("salesforce", connection, options).check([])
        return problems


class KafkaConnectionHook(CdcConnectionHook):
    conn_type = "cdc_kafka"
    hook_name = "CDC: Kafka"
    default_conn_name = "cdc_kafka_default"
    test_keys = frozenset({"topics"})
    tested = "logged in; the cluster answers"

    def find_problems(self, connection: ConnectionInfo, options: Mapping[str, Any]) -> Iterable[Problem]:
        """The format of messages is no part of a connection: none is read."""
        topics = options.get("topics", ())
        topics = [topics] if isinstance(topics, str) else list(topics)
        source = _open("kafka", connection, {"topics": topics, "format": "debezium"})
        source.identity()
        return source.topic_problems() if topics else ()


class IcebergConnectionHook(CdcConnectionHook):
    conn_type = "cdc_iceberg"
    hook_name = "CDC: Iceberg REST catalog"
    default_conn_name = "cdc_iceberg_default"
    test_keys = frozenset({"catalog", "storage"})
    tested = "logged in; the catalog stages tables, and their files can be written, read and deleted"

    def find_problems(self, connection: ConnectionInfo, options: Mapping[str, Any]) -> Iterable[Problem]:
        definition = Target(
            "iceberg",
            connection=connection.connection_id,
            catalog=str(options.get("catalog", "")),
            options={"storage": str(options["storage"])} if "storage" in options else {},
        )
        no_log = ChangeLog(LocalStore("/nowhere"))
        target = load_class("target", "iceberg", TARGETS)(definition, connection, UNDER_TEST, no_log)
        problems: Iterable[Problem] = target.check([])
        return problems


class BucketConnectionHook(CdcConnectionHook):
    """``scheme``: of the locations in this kind of store."""

    scheme: ClassVar[str]
    example: ClassVar[str]
    test_keys = frozenset({"location"})
    tested = "objects can be created exclusively, listed and deleted at the location"

    def find_problems(self, connection: ConnectionInfo, options: Mapping[str, Any]) -> Iterable[Problem]:
        location = str(options.get("location", ""))
        if parse_location(location).scheme != self.scheme or not re.match(PATTERN, location):
            found = "another location" if location else "no location"  # a URL may contain a signature
            raise _not_valid(found, f'{{"location": "{self.example}"}}')
        return store_problems(open_store(location, connection))


class S3ConnectionHook(BucketConnectionHook):
    conn_type = "cdc_s3"
    hook_name = "CDC: bucket in S3"
    default_conn_name = "cdc_s3_default"
    scheme = S3
    example = "s3://bucket/path"


class CloudStorageConnectionHook(BucketConnectionHook):
    conn_type = "cdc_gcs"
    hook_name = "CDC: bucket in Cloud Storage"
    default_conn_name = "cdc_gcs_default"
    scheme = GS
    example = "gs://bucket/path"


class AzureConnectionHook(BucketConnectionHook):
    conn_type = "cdc_azure"
    hook_name = "CDC: container in Azure"
    default_conn_name = "cdc_azure_default"
    scheme = ABFSS
    example = "abfss://container@account.dfs.core.windows.net/path"


def valid_options(given: Any, keys: frozenset[str]) -> dict[str, Any]:
    """The object in ``test_with``, also if it is a text. Raises CheckFailed (CON005) for anything else, and for other
    keys."""
    if isinstance(given, str):
        try:
            given = json.loads(given or "{}")
        except ValueError:
            raise _not_valid("not JSON", "an object") from None
    if not isinstance(given or {}, dict):
        raise _not_valid(type(given).__name__, "an object")
    options = {name: value for name, value in (given or {}).items() if value not in (None, "")}
    if unknown := sorted(options.keys() - keys):
        raise _not_valid(", ".join(unknown), ", ".join(sorted(keys)))
    return options


def _open(kind: str, connection: ConnectionInfo, options: Mapping[str, Any]) -> Any:
    """A source connector. Raises CheckFailed (CON005) for values that the keys cannot have."""
    made = load_class("source", kind, SOURCES)
    try:
        return made(Source(kind, connection.connection_id, options=dict(options)), connection, UNDER_TEST)
    except (TypeError, ValueError) as error:
        raise _not_valid(str(error), f"values as under `source` of type {kind} in the YAML") from error


def _not_valid(found: str, allowed: str) -> CheckFailed:
    return CheckFailed.of(
        "CON005",
        "the settings for the connection test are not valid",
        where=f"{TEST_WITH} in the extra of the connection",
        found=found[:200],
        allowed=allowed,
        do=f"correct {TEST_WITH}; only tests of the connection read it",
    )
