"""The common part of the load generators: how their transactions run."""

from __future__ import annotations

import random
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Self


class LoadGenerator(ABC):
    """A writer that changes a source in small transactions, from a seed.

    ``run`` makes a number of transactions. ``with`` makes them in a thread until the end of the block, ``pause_s``
    seconds apart; it can be entered again. ``done`` counts the changes by kind.
    """

    def __init__(self, seed: int, pause_s: float) -> None:
        self.pause_s = pause_s
        self.done: Counter[str] = Counter()
        self._random = random.Random(seed)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    @abstractmethod
    def session(self) -> AbstractContextManager[Callable[[], None]]:
        """A connection to the source. Each call of its function makes one transaction."""

    def run(self, transactions: int) -> None:
        with self.session() as step:
            for _ in range(transactions):
                step()

    def __enter__(self) -> Self:
        self._stop.clear()
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        assert self._thread
        self._thread.join()
        if self._error:
            raise self._error

    def _loop(self) -> None:
        try:
            with self.session() as step:
                while not self._stop.wait(self.pause_s):
                    step()
        except BaseException as error:
            self._error = error
