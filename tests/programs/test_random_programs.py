"""Random programs of a replicator's life, with a new seed in each nightly run."""

from __future__ import annotations

import pytest

from tests.model import seeds
from tests.programs.explore import EACH, explore
from tests.programs.life import Servers

PROGRAMS = 300

pytestmark = [pytest.mark.jvm, pytest.mark.server]


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(PROGRAMS // EACH))
def test_every_copy_is_equal_or_visibly_stopped(servers: Servers, number: int) -> None:
    found = [str(one) for one in explore(f"{seeds.seed()} {number}", servers, set())]
    assert not found, "\n\n".join(found)
