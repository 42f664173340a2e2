"""The seam for fault injection: names for the points where a fault test makes a process fail.

The package contains no faults. A fault test puts a module ``airflow_cdc_failpoints`` on the path of the process;
without it a failpoint does nothing. A point that has an effect lies between ``x.before`` and ``x.after``: an error
raised at the first is an answer lost without the effect, at the second an answer lost with it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable


def _injected() -> Callable[[str], None] | None:
    try:
        inject: Callable[[str], None] = importlib.import_module("airflow_cdc_failpoints").inject
    except ModuleNotFoundError:
        return None
    return inject


_inject = _injected()


def failpoint(name: str) -> None:
    """Does nothing, except in a fault test."""
    if _inject is not None:
        _inject(name)
