"""These tests parse the whole code. In Python 3.11 ``ast.parse`` fails if the garbage collector starts another parse
during it, as the text of a resource warning does."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def without_garbage_collection() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()
