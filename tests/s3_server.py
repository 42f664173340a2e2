"""moto with the conditional writes of S3. moto looks for the object, then writes: of two requests at once, both can
find none."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

from moto.s3.responses import S3Response
from moto.server import main

CONDITIONAL = ("put_object", "_key_response_post")
"""The methods of moto that look at ``If-None-Match`` before they write."""


def make_atomic() -> None:
    """Makes each conditional write of moto's in this process one step."""
    lock = threading.Lock()

    def locked(write: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(write)
        def one_at_a_time(*args: Any, **kwargs: Any) -> Any:
            with lock:
                return write(*args, **kwargs)

        return one_at_a_time

    for name in CONDITIONAL:
        setattr(S3Response, name, locked(getattr(S3Response, name)))


if __name__ == "__main__":
    make_atomic()
    main(sys.argv[1:])
