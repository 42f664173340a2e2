"""What somebody changes in a copy, behind the replicator's back."""

from __future__ import annotations

import pytest

from tests.e2e.damage import Damaged

pytestmark = [pytest.mark.jvm, pytest.mark.server]


def test_damage_stays_where_nobody_repairs_it(damaged: Damaged) -> None:
    """``test_repair`` does, when the interval of the change has passed."""
    assert damaged.name == "broken"
