"""Which tests share a process where two run at a time: each has a stage of its own, one of them an Airflow."""

from __future__ import annotations

import pytest

FIRST, SECOND = pytest.mark.xdist_group("first"), pytest.mark.xdist_group("second")
