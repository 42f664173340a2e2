"""Programs that once showed a defect."""

from __future__ import annotations

import pytest

from tests.programs.life import Servers
from tests.programs.named import NAMED
from tests.programs.whole import run_program

pytestmark = [pytest.mark.jvm, pytest.mark.server]


@pytest.mark.parametrize("name", NAMED)
def test_a_program_that_once_showed_a_defect_shows_none(servers: Servers, name: str) -> None:
    run_program(NAMED[name], servers)
