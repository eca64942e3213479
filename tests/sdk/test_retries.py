"""The Python SDK's retries honour what the gateway says."""

import pytest
from sdk import python_sdk, retries
from sdk.seen import Caller
from weir_dev import WeirDev

CALLERS = [python_sdk.call_sync, python_sdk.call_async]


@pytest.mark.parametrize("caller", CALLERS)
def test_s19_s20_the_sdk_waits_for_a_place(simulated: WeirDev, caller: Caller) -> None:
    """S19, S20: a 429 of the tenant's own limit."""
    retries.assert_waits_for_a_place(simulated, caller)


def test_s20_the_sdk_waits_for_a_worker(simulated: WeirDev) -> None:
    """S20: a 503 of ours."""
    retries.assert_waits_for_a_worker(simulated, python_sdk.call_sync)


@pytest.mark.parametrize("caller", CALLERS)
def test_s19_what_no_wait_mends_is_not_retried(caller: Caller) -> None:
    """S19: `x-should-retry: false`."""
    retries.assert_not_retried(caller)
