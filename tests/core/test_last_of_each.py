"""The last entry of each key, by order key."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa

from spark_jobs.folds.key_groups import last_of_each


def test_of_any_number_of_entries_of_a_key_the_last_in_order_counts() -> None:
    random = Random(7)
    for size in (0, 1, 7, 5_000):
        keys = [random.randrange(max(1, size // 40)) for _ in range(size)]
        numbers = np.array([sorted(set(keys)).index(key) for key in keys], np.int64)
        orders = [f"{random.randrange(size):08d}" for _ in range(size)]
        in_order = sorted(range(size), key=lambda at: (orders[at], at))
        model = {int(numbers[at]): at for at in in_order}
        last, entries = last_of_each(numbers, pa.chunked_array([pa.array(orders, pa.string())]))
        assert dict(enumerate(last.tolist())) == model
        assert sum(entries) == size
