"""Keeps pandas out of the jobs. They do not use it, and importing it is more than half of their Python start time.

pyarrow and Spark import pandas if it is installed, in case a caller passes a data frame. This finder hides it from
them. Any other importer gets it: a custom connector, and Spark's ``mapInArrow``, which requires it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType

BLOCKED_IMPORTERS = ("pyarrow", "pyspark.sql.session", "pyspark.testing", "spark_jobs", "airflow_cdc_provider")
"""The last two stand for pyarrow: its compiled code has no frames, so its caller appears as the importer."""
FORWARDERS = ("importlib", "pyspark.sql.pandas.utils")


class PandasBlocker:
    """A module finder in front of all others."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name == "pandas" and _importer(sys._getframe(1)).startswith(BLOCKED_IMPORTERS):
            raise ModuleNotFoundError("pandas is kept out of the jobs", name=name)
        return None


def install() -> None:
    if PandasBlocker not in sys.meta_path:
        sys.meta_path.insert(0, PandasBlocker)


def _importer(frame: FrameType | None) -> str:
    """The module whose code runs the import."""
    while frame and _module(frame).startswith(FORWARDERS):
        frame = frame.f_back
    return _module(frame) if frame else ""


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))
