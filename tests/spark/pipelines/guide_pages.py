"""The packages of the guides "Write your own source" and "… target", installed from the text of the pages."""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from airflow_cdc_provider.loader import types as loader_types

GUIDES = Path(__file__).parents[3] / "docs" / "guides"


@dataclass(frozen=True)
class GuidePage:
    file: str
    module: str

    @cached_property
    def blocks(self) -> dict[str, str]:
        """The code blocks of the page by language."""
        text = (GUIDES / self.file).read_text()
        return dict(re.findall(r"^```(toml|yaml|python)\n(.*?)^```", text, re.MULTILINE | re.DOTALL))


SOURCE_PAGE = GuidePage("write-your-own-source.md", "journal_source")
TARGET_PAGE = GuidePage("write-your-own-target.md", "sqlite_target")


@contextlib.contextmanager
def install(site: Path, monkeypatch: pytest.MonkeyPatch, *pages: GuidePage) -> Iterator[None]:
    for page in pages:
        info = site / f"{page.module}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {page.module}\nVersion: 1.0\n")
        points = re.sub(r'^\[project\.entry-points\."(.*)"\]$', r"[\1]", page.blocks["toml"], flags=re.MULTILINE)
        (info / "entry_points.txt").write_text(points.replace('"', ""))
        (site / f"{page.module}.py").write_text(page.blocks["python"])
    monkeypatch.syspath_prepend(str(site))
    importlib.invalidate_caches()
    loader_types._external_types.cache_clear()
    try:
        yield
    finally:
        loader_types._external_types.cache_clear()
        for page in pages:
            sys.modules.pop(page.module, None)
