"""How a job of BigQuery failed, and what that means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum

from airflow_cdc_provider.core.connections.error_classes import (
    STATEMENT,
    UNKNOWN,
    Meaning,
    limit,
    permanent,
    permission,
    retry,
)
from airflow_cdc_provider.core.errors import CdcError, CheckFailed
from airflow_cdc_provider.targets.database import errors

SUPERSEDED, NO_ROW = "CDC_SUPERSEDED", "CDC_NO_ROW"
"""Messages that our scripts raise: the control row is another one; a change has no row."""

CONFLICT = re.compile(r"concurrent (?:update|transaction)|aborted due to", re.IGNORECASE)
PACED = frozenset(
    {
        "rateLimitExceeded",
        "jobRateLimitExceeded",
        "quotaExceeded",
        "backendError",
        "jobBackendError",
        "internalError",
        "jobInternalError",
        "tableUnavailable",
    }
)
QUOTAS = frozenset({"rateLimitExceeded", "jobRateLimitExceeded", "quotaExceeded"})
DENIED = frozenset({"accessDenied", "forbidden", "insufficientPermissions"})


ERRORS: Mapping[str, Meaning] = {
    **retry(" ".join(PACED | {"resourceInUse", "stopped"})),
    **limit("timeout resourcesExceeded", "give the project more slots, or leave large columns out: `columns.exclude`"),
    **limit("billingTierLimitExceeded responseTooLarge", "raise the limit that BigQuery names"),
    **permanent("billingNotEnabled", "enable billing of the project that pays"),
    **permanent("notImplemented badRequest", STATEMENT),
    **permission("blocked invalidUser"),
}
"""Reasons by what they mean, beside the causes below."""


class Cause(StrEnum):
    SUPERSEDED = "superseded"
    NO_ROW = "no row"
    CONFLICT = "conflict"
    PACED = "paced"
    EXISTS = "exists"
    MISSING = "missing"
    DENIED = "denied"
    BILLED = "billed"
    VALUE = "value"
    OTHER = "other"


class JobFailed(Exception):
    """``reason``: BigQuery's name of the error."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message

    @property
    def cause(self) -> Cause:
        if SUPERSEDED in self.message:
            return Cause.SUPERSEDED
        if NO_ROW in self.message:
            return Cause.NO_ROW
        if CONFLICT.search(self.message):
            return Cause.CONFLICT
        if self.reason in PACED:
            return Cause.PACED
        return {
            "duplicate": Cause.EXISTS,
            "notFound": Cause.MISSING,
            "bytesBilledLimitExceeded": Cause.BILLED,
            "invalid": Cause.VALUE,
            "invalidQuery": Cause.VALUE,
            "outOfRange": Cause.VALUE,
            **dict.fromkeys(DENIED, Cause.DENIED),
        }.get(self.reason, Cause.OTHER)


def problem_of(failed: JobFailed, address: str, grants: str) -> CdcError:
    """``grants``: what to do if a privilege is missing."""
    text = f"{failed.reason}: {first_line(failed.message)}"
    match failed.cause:
        case Cause.DENIED:
            return errors.missing_privilege(address, text, grants)
        case Cause.MISSING:
            return errors.missing_object(address, text, grants)
        case Cause.CONFLICT:
            return errors.busy(address, text)
        case Cause.VALUE:
            do = "exclude the column in tables.columns, or correct the value at the source and resync"
            return errors.value_rejected(address, text, do)
        case Cause.BILLED:
            do = "raise `maximum_bytes_billed` of the target, or cluster the table by its key"
            return CheckFailed.of("TGT070", "a job would cost more than is allowed", address, text, do=do)
        case Cause.PACED if failed.reason in QUOTAS:
            return errors.over_quota(address, text)
        case _:
            return errors.failed(address, text, ERRORS.get(failed.reason, UNKNOWN), grants)


def first_line(message: str) -> str:
    return message.strip().splitlines()[0] if message.strip() else ""
