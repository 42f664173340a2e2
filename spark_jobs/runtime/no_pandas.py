"""Keeps pandas out of the jobs. They use none of it, and it is more than half of what their Python would load.

pyarrow and Spark look for it, in case they are handed a frame of its, and do without where it is not installed. To them
it is not installed here. Whoever else imports it gets it: a connector of somebody's own, and Spark's ``mapInArrow``,
which insists on it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType

DO_WITHOUT = ("pyarrow", "pyspark.sql.session", "pyspark.testing", "spark_jobs", "airflow_cdc_provider")
"""The last two stand for pyarrow: its compiled code has no frames, so that its caller seems to ask."""
ASK_FOR_OTHERS = ("importlib", "pyspark.sql.pandas.utils")


class NoPandas:
    """A finder of modules that comes before all others."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name == "pandas" and _asked_by(sys._getframe(1)).startswith(DO_WITHOUT):
            raise ModuleNotFoundError("pandas is kept out of the jobs", name=name)
        return None


def keep_out() -> None:
    if NoPandas not in sys.meta_path:
        sys.meta_path.insert(0, NoPandas)


def _asked_by(frame: FrameType | None) -> str:
    """The module whose code wants the import."""
    while frame and _module(frame).startswith(ASK_FOR_OTHERS):
        frame = frame.f_back
    return _module(frame) if frame else ""


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))
