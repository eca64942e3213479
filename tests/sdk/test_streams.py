"""Streams, records and headers as the Python SDK sees them."""

from sdk import python_sdk, streams
from weir_dev import WeirDev


def test_s16_comments_are_no_chunks(simulated: WeirDev) -> None:
    """S16, S18: the SDK reads a stream with comments in it to its end."""
    streams.assert_reads_over_comments(simulated, python_sdk.call_sync)


async def test_s01_s22_the_row_is_complete(simulated: WeirDev) -> None:
    """S01, S22: also where the client asked for no usage."""
    await streams.assert_row_is_complete(simulated, python_sdk.call_sync)


async def test_the_class_is_in_the_record(simulated: WeirDev) -> None:
    """Asked for by a field or by a header."""
    await streams.assert_class(simulated, python_sdk.call_sync)


def test_s21_a_refusal_is_openais(simulated: WeirDev) -> None:
    """S21: body and headers of a 429."""
    streams.assert_limit_headers(simulated, python_sdk.call_sync)
