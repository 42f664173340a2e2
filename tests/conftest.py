"""What holds for every layer."""

from __future__ import annotations

from hypothesis import settings

# A busy machine is no failure of the code: the layer's budget is what counts.
settings.register_profile("layers", deadline=None, print_blob=True)
settings.load_profile("layers")
