"""One call of an SDK and what came back, in a form that is the same for every SDK.

The Python SDK, its async twin and the Node SDK all give a `Seen`, so one check serves all of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]
Kind = Literal["chat", "completions", "models", "model"]


@dataclass(frozen=True)
class Call:
    """One call: `fields` are the SDK's own arguments, `extra_body` and `extra_headers` included."""

    kind: Kind
    fields: Json
    base_url: str
    api_key: str
    max_retries: int = 2
    """The SDKs' own default."""


@dataclass(frozen=True)
class Seen:
    """What an SDK handed out: an answer, the chunks of one, or its exception."""

    answers: list[Json] = field(default_factory=list)
    """The whole answer alone, or every chunk of a stream."""
    headers: dict[str, str] = field(default_factory=dict)
    error: Json | None = None
    """`class`, `classes` (with its bases), `status`, `code`, `type`, `param`, `message`,
    `request_id` of the SDK's exception."""
    elapsed_s: float = 0.0

    def _choices(self, index: int) -> Iterator[Json]:
        for answer in self.answers:
            for choice in answer.get("choices") or ():
                if choice["index"] == index:
                    yield choice

    @property
    def indexes(self) -> list[int]:
        """The choices' indexes."""
        return sorted({c["index"] for a in self.answers for c in a.get("choices") or ()})

    def text(self, index: int = 0) -> str:
        """All text of a choice."""
        return "".join(_text(choice) for choice in self._choices(index))

    def finish(self, index: int = 0) -> str | None:
        """A choice's finish reason; fails where it has several."""
        said = [c["finish_reason"] for c in self._choices(index) if c.get("finish_reason")]
        assert len(said) <= 1, said
        return said[0] if said else None

    def logprobs(self, index: int = 0) -> list[Json]:
        """A chat choice's log probabilities, one entry a token."""
        found: list[Json] = []
        for choice in self._choices(index):
            found += (choice.get("logprobs") or {}).get("content") or []
        return found

    def text_logprobs(self, index: int = 0) -> list[float | None]:
        """A text completion's log probabilities, one a token."""
        found: list[float | None] = []
        for choice in self._choices(index):
            found += (choice.get("logprobs") or {}).get("token_logprobs") or []
        return found

    def tool_calls(self, index: int = 0) -> list[Json]:
        """A choice's tool calls, a stream's put together as an SDK's user does."""
        found: dict[int, Json] = {}
        for choice in self._choices(index):
            part = choice.get("message") or choice.get("delta") or {}
            for place, call in enumerate(part.get("tool_calls") or ()):
                known = found.setdefault(call.get("index", place), {"name": "", "arguments": ""})
                function = call.get("function") or {}
                known["name"] += function.get("name") or ""
                known["arguments"] += function.get("arguments") or ""
        return [found[index] for index in sorted(found)]

    @property
    def usages(self) -> list[Json]:
        """Every usage object that came, in order."""
        return [answer["usage"] for answer in self.answers if answer.get("usage")]

    @property
    def usage(self) -> Json:
        """The last one."""
        assert self.usages, "there is no usage"
        return self.usages[-1]


def _text(choice: Json) -> str:
    part = choice.get("message") or choice.get("delta") or choice
    return part.get("content") or part.get("text") or ""


Caller = Callable[[Call], Seen]
"""An SDK as the checks use it."""
