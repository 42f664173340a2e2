"""Texts that no file of the repository may contain, and the limit of its length."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
LONGEST_LINES = 400
# In pieces, so that this file is no finding itself.
REGISTRIES = ["pypi" + ".org", "python" + "hosted", "repo1." + "maven", "maven" + "2", "registry." + "npmjs"]
REGISTRIES += ["crates" + ".io", "proxy." + "golang", "deb." + "debian"]


def files() -> list[Path]:
    """Tracked and not yet tracked, without what is ignored."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    return [path for name in listed.stdout.split("\0") if name and (path := REPOSITORY / name).is_file()]


def test_no_file_names_a_package_registry() -> None:
    pattern = re.compile("|".join(map(re.escape, REGISTRIES)).encode(), re.IGNORECASE)
    found = [
        f"{path.relative_to(REPOSITORY)}:{number}: {line.decode(errors='replace').strip()[:100]}"
        for path in files()
        for number, line in enumerate(path.read_bytes().splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []


def test_no_source_file_exceeds_the_limit_of_lines() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in files() if path.suffix == ".py"}
    assert {str(path): length for path, length in lengths.items() if length > LONGEST_LINES} == {}
