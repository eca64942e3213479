"""One running sequence: the engine writes what it generates, the HTTP side reads what is new.

Everything unread is merged, so a reader that lags costs the memory of its text and nothing else:
no queue to fill, no other stream held up.
"""

import asyncio
from dataclasses import dataclass, field
from enum import StrEnum

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


class Generation:
    """Bridge between an engine and one reader, both on the event loop."""

    __slots__ = (
        "_changed",
        "_failure",
        "_finish",
        "_logprobs",
        "_text",
        "_tokens",
        "cached_tokens",
        "completion_tokens",
        "prompt_tokens",
        "rid",
    )

    def __init__(self, rid: str, prompt_tokens: int) -> None:
        self.rid = rid
        self.prompt_tokens = prompt_tokens
        self.cached_tokens: int | None = None
        self.completion_tokens = 0
        self._text: list[str] = []
        self._tokens = 0
        self._logprobs: list[TokenLogprob] = []
        self._finish: Finish | None = None
        self._failure: EngineFailure | None = None
        self._changed: asyncio.Future[None] | None = None

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
        if self.ended:
            return
        self.completion_tokens += tokens
        self._tokens += tokens
        if text:
            self._text.append(text)
        self._logprobs.extend(logprobs)
        self._wake()

    def finish(self, finish: Finish) -> None:
        """Engine: it ended. The first end wins."""
        if not self.ended:
            self._finish = finish
            self._wake()

    def fail(self, failure: EngineFailure) -> None:
        """Engine: it broke. The first end wins."""
        if not self.ended:
            self._failure = failure
            self._wake()

    async def take(self) -> Delta:
        """Reader: everything new, waiting for text or the end. One reader at a time.

        Raises EngineFailure where the engine gave up and all text was taken.
        """
        while not (self._text or self.ended):
            self._changed = asyncio.get_running_loop().create_future()
            await self._changed
        if self._failure is not None and not self._text:
            raise self._failure
        finish = self._finish
        usage = finish.usage if finish is not None else self.usage
        delta = Delta("".join(self._text), self._tokens, usage, self._logprobs, finish)
        self._text, self._tokens, self._logprobs = [], 0, []
        return delta

    def _wake(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)
