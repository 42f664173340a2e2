"""Errors with the status of gRPC."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration
from google.rpc.code_pb2 import Code
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

RETRY_S = 0.01


class Refused(Exception):
    """``code``: a value of ``google.rpc.Code``."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text

    @property
    def status(self) -> Status:
        found = Status(code=self.code, message=self.text)
        if self.code == Code.ABORTED:
            delay = Duration(nanos=int(RETRY_S * 1e9))
            found.details.add().Pack(RetryInfo(retry_delay=delay))
        return found


def invalid(text: str) -> Refused:
    return Refused(Code.INVALID_ARGUMENT, text)


def not_found(text: str) -> Refused:
    return Refused(Code.NOT_FOUND, text)


def failed_precondition(text: str) -> Refused:
    return Refused(Code.FAILED_PRECONDITION, text)


def already_exists(text: str) -> Refused:
    return Refused(Code.ALREADY_EXISTS, text)


def aborted(text: str) -> Refused:
    return Refused(Code.ABORTED, text)


def unimplemented(text: str) -> Refused:
    return Refused(Code.UNIMPLEMENTED, text)
