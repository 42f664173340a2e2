"""A process or thread that is held at a failpoint while others go on."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from airflow_cdc_failpoints import ARMED, TOKEN

PATIENCE_S = 60.0


class Stop:
    """Whoever comes first to ``place`` is held there until ``go``."""

    def __init__(self, place: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._token, self._go = folder / f"{place}.token", folder / f"{place}.go"
        self._token.touch()
        monkeypatch.setenv(ARMED, f"{place}=stop:{self._go}")
        monkeypatch.setenv(TOKEN, str(self._token))

    def wait_until_reached(self) -> None:
        until = time.monotonic() + PATIENCE_S
        while self._token.exists():
            assert time.monotonic() < until, "nobody came"
            time.sleep(0.01)

    def go(self) -> None:
        self._go.touch()
