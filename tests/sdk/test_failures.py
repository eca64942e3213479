"""Every status, and every end after the first byte, surfaces as the Python SDK's own exception."""

import pytest
from sdk import failures, python_sdk
from sdk.failures import Failure
from sdk.seen import Caller
from sdk.statuses import MIDSTREAM, STATUSES
from weir_dev import WeirDev


@pytest.mark.parametrize("failure", STATUSES, ids=lambda failure: failure.name)
def test_a_status_is_an_exception(simulated: WeirDev, failure: Failure) -> None:
    """DESIGN 2.2, S20: class, status, type, code, param, request id, and when to try again."""
    failures.assert_status(failure, simulated, python_sdk.call_sync)


@pytest.mark.parametrize("failure", MIDSTREAM, ids=lambda failure: failure.name)
@pytest.mark.parametrize("caller", [python_sdk.call_sync, python_sdk.call_async])
def test_an_error_event_is_an_exception(
    simulated: WeirDev, failure: Failure, caller: Caller
) -> None:
    """INV-14: after the first byte too, with what came before it in hand."""
    failures.assert_event(failure, simulated, caller)


def test_async_statuses(simulated: WeirDev) -> None:
    """The async SDK raises the same."""
    for failure in STATUSES[:4]:
        failures.assert_status(failure, simulated, python_sdk.call_async)
