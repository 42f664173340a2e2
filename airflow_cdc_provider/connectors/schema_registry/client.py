"""A client of a schema registry with Confluent's interface: fetches schemas with everything that they refer to."""

from __future__ import annotations

from typing import Any

from airflow_cdc_provider.connectors.schema_registry.apicurio_schemas import connect_schema
from airflow_cdc_provider.connectors.schema_registry.client_settings import URL, address, client_settings, tls_warnings
from airflow_cdc_provider.core.connections.allowed_extras import option_not_allowed
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.tls import UNTRUSTED, untrusted
from airflow_cdc_provider.core.errors import CdcError, CheckFailed, Problem, SourceUnavailable
from airflow_cdc_provider.core.log.registered_schemas import OF_APICURIO, ReferencedSchema, RegisteredSchema
from airflow_cdc_provider.core.registry import load_library

AVRO, JSON, PROTOBUF, CONNECT = "AVRO", "JSON", "PROTOBUF", "KCONNECT"
BUILT_IN = ("confluent/", "google/protobuf/", "google/type/")
"""Prefixes of Protobuf files that every reader has."""
DENIED, NOT_FOUND = (401, 403), (404,)
STAYS = "nothing was sealed or skipped; the next run reads the same messages"


class RegistryClient:
    """Does no I/O on construction."""

    def __init__(self, connection: ConnectionInfo) -> None:
        self._connection = connection

    @property
    def address(self) -> str:
        return address(self._connection)

    def tls_warnings(self) -> list[Problem]:
        return tls_warnings(self._connection)

    def fetch(self, schema_id: str, used_by: str) -> RegisteredSchema:
        """``used_by``: the message that names the schema, for errors. Raises SourceUnavailable if the registry does not
        answer (SRC110) or does not have the schema (SRC108), CheckFailed if it denies access (SRC109) or its
        certificate is not trusted (CON042), or as ``connect_schema``."""
        try:
            if schema_id.startswith(OF_APICURIO):
                number = schema_id.removeprefix(OF_APICURIO)
                return RegisteredSchema(CONNECT, connect_schema(self._connection, number, used_by, self._open))
            with self._open() as client:
                by_id = schema_id.isdecimal()
                schema = client.get_schema(int(schema_id)) if by_id else client.get_schema_by_guid(schema_id)
                references: dict[str, str] = {}
                _add_references(client, schema, references)
                listed = tuple(ReferencedSchema(name, text) for name, text in references.items())
                return RegisteredSchema(schema.schema_type or AVRO, _text(schema), listed)
        except CdcError:
            raise
        except Exception as error:  # the library passes on those of its HTTP client
            raise self._error(error, schema_id, used_by) from error

    def _open(self, url: str = "") -> Any:
        """``url``: of another interface than that of the connection."""
        library = load_library("confluent_kafka.schema_registry", "source", "registry")
        settings = client_settings(self._connection)
        try:
            return library.SchemaRegistryClient(settings | ({URL: url} if url else {}))
        except OSError as error:
            found = f"unusable files of certificates: {error.strerror or type(error).__name__}"
            raise option_not_allowed(
                self._connection, found, "files in PEM form that exist on every host that runs jobs"
            ) from None

    def _error(self, error: Exception, schema_id: str, used_by: str) -> CdcError:
        status, schema_id = getattr(error, "http_status_code", None), schema_id.removeprefix(OF_APICURIO)
        found = f"{type(error).__name__}: {error}".splitlines()[0][:300]
        where = f"{self.address}, schema id {schema_id} of {used_by}"
        connection = f"connection {self._connection.connection_id}"
        if UNTRUSTED.search(str(error)):
            return untrusted(self.address, self._connection.connection_id, found, "`ssl.ca.location`")
        if status in NOT_FOUND:
            return SourceUnavailable.of(
                "SRC108",
                f"the schema registry has no schema with the id {schema_id}",
                where=where,
                found=found,
                do="register the schema again under its id, or correct the host of "
                f"{connection}: the messages may belong to another registry or context (`/contexts/:.NAME:`)",
                data=STAYS,
            )
        if status in DENIED:
            return CheckFailed.of(
                "SRC109",
                "the schema registry denies reading a schema",
                where=where,
                found=found,
                do=f"grant the login of {connection} the right to read the subject, or correct the login",
                data=STAYS,
            )
        return SourceUnavailable.of(
            "SRC110",
            "the schema registry does not answer",
            where=where,
            found=found,
            do=f"start the registry, or correct {connection}; schemas that are in staging need no registry",
            data=STAYS,
        )


def _add_references(client: Any, schema: Any, references: dict[str, str]) -> None:
    for reference in schema.references or ():
        if reference.name not in references and not reference.name.startswith(BUILT_IN):
            referenced = client.get_version(reference.subject, reference.version, True).schema
            _add_references(client, referenced, references)
            references[reference.name] = _text(referenced)


def _text(schema: Any) -> str:
    if not isinstance(schema.schema_str, str):
        raise ValueError("the answer contains no schema")
    return schema.schema_str
