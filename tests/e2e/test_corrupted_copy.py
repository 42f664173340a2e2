"""Changes of a copy by another writer."""

from __future__ import annotations

import pytest

from tests.e2e.corrupted_copy import CorruptedCopy

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.nightly]


def test_a_corrupted_row_stays_until_it_is_repaired(corrupted: CorruptedCopy) -> None:
    """``test_repair`` repairs it, after the interval of the change."""
    assert corrupted.name == "broken"
