"""A process or thread that waits at a failpoint while others continue."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from airflow_cdc_failpoints import ARMED, TOKEN

LIMIT_S = 60.0


class Stop:
    """The first process or thread that reaches ``failpoint`` waits there until ``go``."""

    def __init__(self, failpoint: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._token, self._go = folder / f"{failpoint}.token", folder / f"{failpoint}.go"
        self._token.touch()
        monkeypatch.setenv(ARMED, f"{failpoint}=stop:{self._go}")
        monkeypatch.setenv(TOKEN, str(self._token))

    def wait_until_reached(self) -> None:
        until = time.monotonic() + LIMIT_S
        while self._token.exists():
            assert time.monotonic() < until, "the failpoint was not reached"
            time.sleep(0.01)

    def go(self) -> None:
        self._go.touch()
