"""One look is shared by all who look at the same at the same time, and by who comes within a second
after it."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

KEPT_US = 1_000_000
Found = dict[str, Any]


@dataclass
class _Look:
    asked: object
    task: "asyncio.Task[Found]"
    ended_us: int | None = None


class SharedLooks:
    """Looks at subjects by their names, each at most once a second. What was seen is not to be
    changed by who is shown it."""

    def __init__(self) -> None:
        self._looks: dict[str, _Look] = {}

    async def look(
        self,
        subject: str,
        asked: object,
        now_us: Callable[[], int],
        begin: Callable[[], Coroutine[Any, Any, Found]],
    ) -> Found:
        """What `begin` sees, or saw of the same subject within the last second, asked with equal
        words. `now_us` is a monotonic clock. Raises what `begin` raises; that is not kept."""
        look = self._looks.get(subject)
        if look is None or look.asked != asked or _is_over(look, now_us()):
            self._forget(now_us())
            look = self._looks[subject] = _begun(asked, now_us, begin)
        # Others wait for it too, so it goes on where one of them leaves.
        return await asyncio.shield(look.task)

    def _forget(self, now_us: int) -> None:
        for subject in [each for each, look in self._looks.items() if _is_over(look, now_us)]:
            del self._looks[subject]


def _begun(
    asked: object, now_us: Callable[[], int], begin: Callable[[], Coroutine[Any, Any, Found]]
) -> _Look:
    look = _Look(asked, asyncio.create_task(begin()))

    def ended(task: "asyncio.Task[Found]") -> None:
        failed = task.cancelled() or task.exception() is not None
        look.ended_us = now_us() - KEPT_US if failed else now_us()

    look.task.add_done_callback(ended)
    return look


def _is_over(look: _Look, now_us: int) -> bool:
    return look.ended_us is not None and now_us - look.ended_us >= KEPT_US
