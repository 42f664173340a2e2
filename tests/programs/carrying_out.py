"""What happens at each act of a program, by the kind of the act."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

from airflow_cdc_provider.core.errors import CdcError
from tests.programs import program as acts
from tests.programs.findings import Finding
from tests.programs.program import Act

if TYPE_CHECKING:
    from tests.programs.life import Life


@singledispatch
def carry_out(act: Act, life: Life) -> None:
    """Raises Finding, or the error of what was refused."""
    raise TypeError(act)


def take_part(act: Act, life: Life) -> None:
    """What is refused has no effect. Raises Finding."""
    try:
        carry_out(act, life)
    except Finding:
        raise
    except CdcError:
        if isinstance(act, (acts.Run, acts.Settle)):
            raise
    except Exception as error:
        raise Finding("crash", f"{act}: {type(error).__name__}: {error}") from error
