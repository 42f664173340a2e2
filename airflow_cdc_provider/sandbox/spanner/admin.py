"""Databases and their schemas: the requests of Google's database administration, and its operations."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

from google.cloud import spanner_admin_database_v1 as admin
from google.longrunning.operations_pb2 import Operation
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import Message

from airflow_cdc_provider.sandbox.spanner.databases import Databases
from airflow_cdc_provider.sandbox.spanner.errors import Refused, invalid, not_found
from airflow_cdc_provider.sandbox.spanner.faults import Fault, Faults

CREATE = re.compile(r"CREATE DATABASE `?([A-Za-z][\w-]*)`?")
ReadyDatabase = admin.Database.pb()


class DatabaseAdminService:
    """The methods are those of the service, by their names. They raise Refused."""

    def __init__(self, databases: Databases, faults: Faults) -> None:
        self._databases, self._faults = databases, faults
        self._numbers = itertools.count(1)
        self.operations: dict[str, Operation] = {}

    def CreateDatabase(self, request: Any) -> Operation:
        match = CREATE.fullmatch(request.create_statement.strip())
        if match is None:
            raise invalid(request.create_statement)
        name = f"{request.parent}/databases/{match[1]}"
        database = self._databases.create(name)
        statements = list(request.extra_statements)
        return self._operation(name, lambda: database.change_schema(statements), _ready(name))

    def GetDatabase(self, request: Any) -> Any:
        return _ready(self._databases.get(request.name).name)

    def DropDatabase(self, request: Any) -> Any:
        self._databases.drop(request.database)
        return Empty()

    def UpdateDatabaseDdl(self, request: Any) -> Operation:
        database, statements = self._databases.get(request.database), list(request.statements)
        if not statements:
            raise invalid("No statements.")
        return self._operation(request.database, lambda: database.change_schema(statements), Empty())

    def _operation(self, database: str, work: Callable[[], None], response: Message) -> Operation:
        """The answer to the first question about a slow operation is that it still runs."""
        operation = Operation(name=f"{database}/operations/o{next(self._numbers)}", done=True)
        try:
            work()
            operation.response.Pack(response)
        except Refused as refused:
            operation.error.CopyFrom(refused.status)
        self.operations[operation.name] = operation
        if self._faults.take(Fault.SLOW):
            return Operation(name=operation.name)
        return operation


class OperationsService:
    def __init__(self, admin_service: DatabaseAdminService) -> None:
        self._admin = admin_service

    def GetOperation(self, request: Any) -> Operation:
        found = self._admin.operations.get(request.name)
        if found is None:
            raise not_found(f"Operation not found: {request.name}")
        return found


def _ready(name: str) -> Any:
    return ReadyDatabase(name=name, state=admin.Database.State.READY, database_dialect=1)


def methods_of(service: object) -> Sequence[str]:
    return [name for name in dir(service) if name[0].isupper()]
