"""The stand-in as a process: ``python -m airflow_cdc_provider.sandbox.spanner.serving PORT``."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from google.cloud import spanner_admin_database_v1 as admin
from google.cloud import spanner_v1
from google.longrunning.operations_pb2 import GetOperationRequest
from grpc_status import rpc_status

from airflow_cdc_provider.sandbox.server import HOST
from airflow_cdc_provider.sandbox.spanner.admin import DatabaseAdminService, OperationsService, methods_of
from airflow_cdc_provider.sandbox.spanner.databases import Databases
from airflow_cdc_provider.sandbox.spanner.errors import Refused
from airflow_cdc_provider.sandbox.spanner.faults import METHOD, Fault, Faults
from airflow_cdc_provider.sandbox.spanner.service import SpannerService

STREAMS = ("StreamingRead", "ExecuteStreamingSql")
REQUESTS = {"Rollback": "RollbackRequest", "StreamingRead": "ReadRequest", "ExecuteStreamingSql": "ExecuteSqlRequest"}
"""Messages that are not named after their method."""

OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


def serve(port: int) -> grpc.Server:
    databases, faults = Databases(), Faults()
    admin_service = DatabaseAdminService(databases, faults)
    server = grpc.server(ThreadPoolExecutor(16), options=OPTIONS)
    server.add_generic_rpc_handlers(
        [
            _handlers("google.spanner.v1.Spanner", SpannerService(databases, faults), spanner_v1),
            _handlers("google.spanner.admin.database.v1.DatabaseAdmin", admin_service, admin),
            _operations(OperationsService(admin_service)),
            _faults(faults),
        ]
    )
    server.add_insecure_port(f"{HOST}:{port}")
    server.start()
    return server


def _handlers(service: str, methods: object, library: Any) -> grpc.GenericRpcHandler:
    handlers = {}
    for name in methods_of(methods):
        request = getattr(library, REQUESTS.get(name, f"{name}Request")).pb()
        handlers[name] = _handler(getattr(methods, name), request.FromString, name in STREAMS)
    return grpc.method_handlers_generic_handler(service, handlers)


def _operations(methods: OperationsService) -> grpc.GenericRpcHandler:
    handler = _handler(methods.GetOperation, GetOperationRequest.FromString, False)
    return grpc.method_handlers_generic_handler("google.longrunning.Operations", {"GetOperation": handler})


def _faults(faults: Faults) -> grpc.GenericRpcHandler:
    def arm(request: bytes, context: grpc.ServicerContext) -> bytes:
        faults.armed = Fault(request.decode())
        return b""

    _, service, method = METHOD.split("/")
    return grpc.method_handlers_generic_handler(service, {method: grpc.unary_unary_rpc_method_handler(arm)})


def _handler(method: Callable[[Any], Any], parse: Callable[[bytes], Any], stream: bool) -> Any:
    def answer(request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return method(request)
        except Refused as refused:
            context.abort_with_status(rpc_status.to_status(refused.status))

    def answers(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        try:
            yield from method(request)
        except Refused as refused:
            context.abort_with_status(rpc_status.to_status(refused.status))

    if stream:
        return grpc.unary_stream_rpc_method_handler(answers, parse, lambda message: message.SerializeToString())
    return grpc.unary_unary_rpc_method_handler(answer, parse, lambda message: message.SerializeToString())


def main() -> None:
    server, stopped = serve(int(sys.argv[1])), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    stopped.wait()
    server.stop(1).wait()


if __name__ == "__main__":
    main()
