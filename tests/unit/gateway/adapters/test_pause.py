"""A pause ends as soon as somebody is in a hurry, and is never nothing."""

import asyncio
import time

from gateway.adapters.pause import HURRIED_S, Pause


async def test_a_hurry_ends_the_sleep_that_is_under_way() -> None:
    """At once, and only that one."""
    pause = Pause()
    sleeping = asyncio.create_task(pause.sleep(60))
    await asyncio.sleep(0)
    with pause.hurried():
        await asyncio.wait_for(sleeping, 5)
    with_nobody = asyncio.create_task(pause.sleep(60))
    await asyncio.sleep(0.01)
    assert not with_nobody.done()
    with_nobody.cancel()


async def test_while_somebody_is_in_a_hurry_there_is_a_rest_still() -> None:
    """No loop that tries without end takes a whole core."""
    pause = Pause()
    with pause.hurried():
        began_s = time.monotonic()
        await pause.sleep(60)
        assert time.monotonic() - began_s >= 0.9 * HURRIED_S
        await pause.sleep(0.001)
