"""The imports of the rooms follow the table of the architecture, and the table contains every room."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from grimp import build_graph

from tests.architecture.room_contract import RoomContract

REPOSITORY = Path(__file__).parents[2]
CONTRACTS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
LINT = "from importlinter.cli import lint_imports; import sys; sys.exit(lint_imports())"


def test_every_import_is_allowed_for_its_room() -> None:
    done = subprocess.run([sys.executable, "-c", LINT], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_room_has_a_rule() -> None:
    package = REPOSITORY / "airflow_cdc_provider"
    present = {f"{package.name}.{path.stem}" for path in package.glob("*.py") if path.stem != "__init__"}
    present |= {f"{package.name}.{path.parent.name}" for path in package.glob("*/__init__.py")}
    ruled = {room for contract in CONTRACTS for room in contract["rooms"]}
    assert present - ruled == set()


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package ``house`` whose ``kitchen`` imports the ``cellar`` and a library."""
    for name, text in {
        "__init__": "",
        "kitchen": "import json\nimport pytest\nfrom house import cellar\n",
        "cellar": "",
    }.items():
        (tmp_path / "house").mkdir(exist_ok=True)
        (tmp_path / "house" / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("may_import", "offences"),
    [
        (["pytest", "house.cellar"], []),
        (["pytest", "house.*"], []),
        (["house.cellar"], ["house.kitchen -> pytest (line 2)"]),
        (["pytest"], ["house.kitchen -> house.cellar (line 3)"]),
    ],
)
def test_an_import_that_is_not_allowed_is_reported_with_its_line(
    house: Path, may_import: list[str], offences: list[str]
) -> None:
    graph = build_graph("house", include_external_packages=True, cache_dir=None)
    options = {"name": "kitchen", "type": "rooms", "rooms": ["house.kitchen"], "may_import": may_import}
    contract = RoomContract("kitchen", {}, options)
    found = contract.check(graph, verbose=False)
    assert found.metadata["offences"] == offences
    assert found.kept == (not offences)
