"""Statuses, error events, retries, comments, records and headers as the Node SDK sees them."""

import pytest
from sdk import failures, retries, streams
from sdk.failures import Failure
from sdk.seen import Caller
from sdk.statuses import MIDSTREAM, STATUSES
from weir_dev import WeirDev


@pytest.mark.parametrize("failure", STATUSES, ids=lambda failure: failure.name)
def test_a_status_is_an_exception(simulated: WeirDev, failure: Failure, caller: Caller) -> None:
    """DESIGN 2.2, S20: class, status, type, code, param, request id, and when to try again."""
    failures.assert_status(failure, simulated, caller)


@pytest.mark.parametrize("failure", MIDSTREAM, ids=lambda failure: failure.name)
def test_an_error_event_is_an_exception(
    simulated: WeirDev, failure: Failure, caller: Caller
) -> None:
    """INV-14: after the first byte too, with what came before it in hand."""
    failures.assert_event(failure, simulated, caller)


def test_s19_s20_the_sdk_waits_for_a_place(simulated: WeirDev, caller: Caller) -> None:
    """S19, S20: a 429 of the tenant's own limit."""
    retries.assert_waits_for_a_place(simulated, caller)


def test_s20_the_sdk_waits_for_a_worker(simulated: WeirDev, caller: Caller) -> None:
    """S20: a 503 of ours."""
    retries.assert_waits_for_a_worker(simulated, caller)


def test_s19_what_no_wait_mends_is_not_retried(caller: Caller) -> None:
    """S19: `x-should-retry: false`."""
    retries.assert_not_retried(caller)


def test_s16_comments_are_no_chunks(simulated: WeirDev, caller: Caller) -> None:
    """S16, S18: the SDK reads a stream with comments in it to its end."""
    streams.assert_reads_over_comments(simulated, caller)


async def test_s01_s22_the_row_is_complete(simulated: WeirDev, caller: Caller) -> None:
    """S01, S22: also where the client asked for no usage."""
    await streams.assert_row_is_complete(simulated, caller)


async def test_the_class_is_in_the_record(simulated: WeirDev, caller: Caller) -> None:
    """Asked for by a field or by a header."""
    await streams.assert_class(simulated, caller)


def test_s21_a_refusal_is_openais(simulated: WeirDev, caller: Caller) -> None:
    """S21: body and headers of a 429."""
    streams.assert_limit_headers(simulated, caller)
