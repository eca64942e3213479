"""One running sequence: the engine writes what it generates, the HTTP side reads what is new.

Everything unread is merged, so a reader that lags costs the memory of its text and nothing else:
no queue to fill, no other stream held up.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from backend.sglang_http.refusals import EngineFailure


class FinishReason(StrEnum):
    """Why a sequence ended."""

    STOP = "stop"
    LENGTH = "length"
    ABORT = "abort"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one sequence as its engine counts them."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None
    """Prompt tokens taken from the prefix cache; None where the engine has not said."""


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """One token's log probability; `bytes_` None where the engine gives none."""

    token: str
    bytes_: list[int] | None
    logprob: float
    top: tuple["TokenLogprob", ...] = ()


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of a sequence."""

    reason: FinishReason
    usage: Usage
    matched_stop: str | int | None = None
    """The stop string or the end token's id that ended it."""


@dataclass(slots=True)
class Delta:
    """What a sequence generated since the last look."""

    text: str
    tokens: int
    usage: Usage
    """So far, this delta included."""
    logprobs: list[TokenLogprob] = field(default_factory=list)
    finish: Finish | None = None


class DirectReader(Protocol):
    """Takes text within the engine's own call: no task is woken for it."""

    def accepts(self) -> bool:
        """Whether it can take more now; where not, the text waits for `take`."""

    def write(self, text: str) -> None:
        """Text that is new."""


@dataclass(slots=True)
class Course:
    """When a sequence was where: Unix nanoseconds, None where it has not been there (yet)."""

    queued_ns: int = field(default_factory=time.time_ns)
    entered_ns: int | None = None
    """It entered the queue, where that is later."""
    started_ns: int | None = None
    """Its prompt step began."""
    first_token_ns: int | None = None
    ended_ns: int | None = None
    retractions: int = 0
    """How often it lost its place and was computed again."""

    @property
    def queue_s(self) -> float | None:
        """How long it waited."""
        entered_ns = self.queued_ns if self.entered_ns is None else self.entered_ns
        waited_s = _seconds_between(entered_ns, self.started_ns)
        # The two come from two clocks.
        return None if waited_s is None else max(0.0, waited_s)

    @property
    def first_token_s(self) -> float | None:
        """From its arrival to its first token."""
        return _seconds_between(self.queued_ns, self.first_token_ns)

    @property
    def end_to_end_s(self) -> float | None:
        """From its arrival to its end."""
        return _seconds_between(self.queued_ns, self.ended_ns)

    @property
    def decoding_s(self) -> float | None:
        """From its first token to its end."""
        return _seconds_between(self.first_token_ns, self.ended_ns)


def _seconds_between(first_ns: int | None, last_ns: int | None) -> float | None:
    return None if first_ns is None or last_ns is None else (last_ns - first_ns) / 1e9


class Generation:
    """Bridge between an engine and one reader, both on the event loop."""

    __slots__ = (
        "_changed",
        "_direct",
        "_failure",
        "_finish",
        "_interval",
        "_logprobs",
        "_text",
        "_tokens",
        "cached_tokens",
        "completion_tokens",
        "course",
        "output_ids",
        "prompt_tokens",
        "rid",
    )

    def __init__(self, rid: str, prompt_tokens: int, *, interval: int = 1) -> None:
        """`interval`: after its first token text is shown once so many tokens are unread."""
        self.rid = rid
        self.prompt_tokens = prompt_tokens
        self.cached_tokens: int | None = None
        self.completion_tokens = 0
        self.course = Course()
        self.output_ids: Callable[[int], Sequence[int]] | None = None
        """Ids of its first so many output tokens, where the engine knows them."""
        self._interval = interval
        self._text: list[str] = []
        self._tokens = 0
        self._logprobs: list[TokenLogprob] = []
        self._finish: Finish | None = None
        self._failure: EngineFailure | None = None
        self._changed: asyncio.Future[None] | None = None
        self._direct: DirectReader | None = None

    @property
    def ended(self) -> bool:
        """Whether the engine is through with it, read or not."""
        return self._finish is not None or self._failure is not None

    @property
    def usage(self) -> Usage:
        """Counted so far."""
        return Usage(self.prompt_tokens, self.completion_tokens, self.cached_tokens)

    def push(self, text: str, tokens: int, logprobs: tuple[TokenLogprob, ...] = ()) -> None:
        """Engine: `tokens` more tokens were generated. `text` may be empty while a character or a
        stop string is incomplete. Ignored after the end."""
        if self._finish is not None or self._failure is not None:
            return
        if not self.completion_tokens:
            self.course.first_token_ns = time.time_ns()
        self.completion_tokens += tokens
        self._tokens += tokens
        if logprobs:
            self._logprobs.extend(logprobs)
        direct = self._direct
        if text and direct is not None and self._interval == 1 and direct.accepts():
            self._tokens = 0
            direct.write(text)
            return
        if text:
            self._text.append(text)
        self._wake()

    def finish(self, finish: Finish) -> None:
        """Engine: it ended. The first end wins."""
        if not self.ended:
            self._finish = finish
            self.course.ended_ns = time.time_ns()
            self._wake()

    def fail(self, failure: EngineFailure) -> None:
        """Engine: it broke. The first end wins."""
        if not self.ended:
            self._failure = failure
            self.course.ended_ns = time.time_ns()
            self._wake()

    async def take(self, direct: DirectReader | None = None) -> Delta:
        """Reader: everything new, waiting for text or the end. One reader at a time.

        What `direct` accepts while this waits goes there and not into the answer.
        Raises EngineFailure where the engine gave up and all text was taken.
        """
        while not (self._due() or self.ended):
            self._changed = asyncio.get_running_loop().create_future()
            self._direct = direct
            try:
                await self._changed
            finally:
                self._direct = None
        if self._failure is not None and not self._text:
            raise self._failure
        finish = self._finish
        usage = finish.usage if finish is not None else self.usage
        delta = Delta("".join(self._text), self._tokens, usage, self._logprobs, finish)
        self._text, self._tokens, self._logprobs = [], 0, []
        return delta

    def _due(self) -> bool:
        if not self._text:
            return False
        return self._tokens >= self._interval or self._tokens == self.completion_tokens

    def _wake(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)
