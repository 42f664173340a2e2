"""Errors of Spanner as problems. Its messages may quote keys and values, which are removed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from airflow_cdc_provider.core.connections.error_classes import LATER, UNKNOWN, ErrorClass, Meaning
from airflow_cdc_provider.core.errors import CdcError
from airflow_cdc_provider.core.registry import load_library
from airflow_cdc_provider.targets.database import errors

QUOTED = re.compile(r"\[.*?\]|\{.*?\}|\".*?\"|'.*?'", re.DOTALL)
TOO_MANY = "too many mutations"
AGAIN = Meaning(ErrorClass.RETRY, LATER)
QUOTA = Meaning(ErrorClass.LIMIT, "raise the quota that Spanner names, or the number of nodes of the instance")


@contextmanager
def translated(address: str, connection_id: str) -> Iterator[None]:
    google = load_library("google.api_core.exceptions", "target", "spanner")
    auth = load_library("google.auth.exceptions", "target", "spanner")
    try:
        yield
    except (google.GoogleAPIError, auth.GoogleAuthError) as error:
        raise _translate(error, google, auth, address, connection_id) from None


def _translate(error: Any, google: Any, auth: Any, address: str, connection_id: str) -> CdcError:
    text = f"{type(error).__name__}: {QUOTED.sub('…', str(getattr(error, 'message', error)).splitlines()[0][:300])}"
    match error:
        case auth.GoogleAuthError() | google.Unauthenticated():
            return errors.login_rejected(address, text, connection_id)
        case google.Forbidden():
            return errors.missing_privilege(address, text)
        case google.NotFound():
            return errors.missing_object(address, text)
        case google.Aborted():
            return errors.busy(address, text)
        case google.InvalidArgument() if TOO_MANY in text.lower():
            do = "lower target.max_mutations: entries of secondary indexes count as mutations, too"
            return errors.value_rejected(address, text, do)
        case google.BadRequest() | google.AlreadyExists():
            do = "exclude the column in tables.columns, or correct the value at the source and resync"
            return errors.value_rejected(address, text, do)
        case google.ServiceUnavailable() | google.DeadlineExceeded() | google.RetryError():
            return errors.unreachable(address, text)
        case google.ResourceExhausted():
            return errors.failed(address, text, QUOTA)
        case google.Cancelled() | google.InternalServerError() if not isinstance(error, google.Unknown):
            return errors.failed(address, text, AGAIN)
        case _:
            return errors.failed(address, text, UNKNOWN)
