"""What must be true of an answer for a row to pass: the effect that was asked for, not the 200.

Each takes what every call of the row gave, in order.
"""

import json
import re
from collections.abc import Callable, Sequence

from sdk.seen import Json, Seen

Check = Callable[[Sequence[Seen]], None]
ASKED_TOKENS = 8
"""`max_tokens` of rows that do not say otherwise: a CPU answers them too."""


def answered(seen: Sequence[Seen]) -> None:
    """Text came, and every choice says how it ended."""
    for each in seen:
        assert each.indexes
        for index in each.indexes:
            assert each.text(index) or each.tool_calls(index), f"choice {index} is empty"
            assert each.finish(index) in ("stop", "length", "tool_calls")


def whole(seen: Sequence[Seen]) -> None:
    """A whole answer in OpenAI's shape: ids, kinds, counts that add up."""
    answered(seen)
    (answer,) = seen[0].answers
    usage = answer["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert usage["prompt_tokens"] > 0
    assert usage["completion_tokens"] > 0
    assert answer["id"].rpartition("cmpl-")[2] == seen[0].headers["x-request-id"]
    assert answer["object"] in ("chat.completion", "text_completion")


def no_usage(seen: Sequence[Seen]) -> None:
    """A stream of which no chunk carries usage, nor lacks a choice."""
    answered(seen)
    for each in seen:
        assert each.usages == []
        assert all(len(chunk["choices"]) == 1 for chunk in each.answers)
        assert len({chunk["id"] for chunk in each.answers}) == 1


def usage_last(seen: Sequence[Seen]) -> None:
    """A stream whose last chunk alone has usage, and no choice."""
    answered(seen)
    for each in seen:
        assert len(each.usages) == 1
        assert each.answers[-1]["choices"] == []
        assert 0 < each.answers[-1]["usage"]["completion_tokens"] <= ASKED_TOKENS


def cut_at(tokens: int) -> Check:
    """The answer ends after so many tokens, and says that it was cut."""

    def check(seen: Sequence[Seen]) -> None:
        answered(seen)
        assert seen[0].finish() == "length"
        assert seen[0].usage["completion_tokens"] == tokens

    return check


def stopped_before(*stops: str) -> Check:
    """The text ends before the first stop string, and the finish reason says why."""

    def check(seen: Sequence[Seen]) -> None:
        answered(seen)
        assert not any(stop in seen[0].text() for stop in stops)
        assert seen[0].finish() == "stop"

    return check


def choices(count: int, *, prompts: int = 1) -> Check:
    """As many choices as were asked for; each prompt is counted once, every output."""

    def check(seen: Sequence[Seen]) -> None:
        answered(seen)
        several, single = seen
        assert several.indexes == list(range(count))
        assert several.usage["prompt_tokens"] == prompts * single.usage["prompt_tokens"]
        assert several.usage["completion_tokens"] > single.usage["completion_tokens"]

    return check


def same_text(seen: Sequence[Seen]) -> None:
    """Every call gave the same text."""
    answered(seen)
    assert len({each.text() for each in seen}) == 1


def third_differs(seen: Sequence[Seen]) -> None:
    """The first two calls gave the same text, the third another."""
    answered(seen)
    assert seen[0].text() == seen[1].text() != seen[2].text()


def differs(seen: Sequence[Seen]) -> None:
    """Each call gave another text: what was changed between them took effect."""
    answered(seen)
    assert len({each.text() for each in seen}) == len(seen)


def matches(pattern: str) -> Check:
    """The whole text matches."""

    def check(seen: Sequence[Seen]) -> None:
        answered(seen)
        assert re.fullmatch(pattern, seen[0].text(), re.DOTALL), seen[0].text()

    return check


def json_object(seen: Sequence[Seen]) -> None:
    """The text is one JSON object."""
    answered(seen)
    assert seen[0].finish() == "stop", seen[0].text()
    assert isinstance(json.loads(seen[0].text()), dict)


def json_like(schema: Json) -> Check:
    """The text is an object with the schema's properties, each one of its `enum`."""

    def check(seen: Sequence[Seen]) -> None:
        json_object(seen)
        found = json.loads(seen[0].text())
        assert set(found) == set(schema["properties"])
        assert all(found[name] in each["enum"] for name, each in schema["properties"].items())

    return check


def logprobs(top: int) -> Check:
    """One entry a token, spelling the text, each with `top` alternatives."""

    def check(seen: Sequence[Seen]) -> None:
        answered(seen)
        entries = seen[0].logprobs()
        assert abs(len(entries) - seen[0].usage["completion_tokens"]) <= 1, "an end may be unseen"
        spelt = "".join(entry["token"] for entry in entries).strip()
        assert spelt.startswith(seen[0].text().strip()), "SGLang names the token that ended it too"
        assert all(entry["logprob"] <= 0 for entry in entries)
        assert all(len(entry["top_logprobs"]) == top for entry in entries)

    return check


def text_logprobs(seen: Sequence[Seen]) -> None:
    """A text completion's log probabilities, one a token."""
    answered(seen)
    entries = seen[0].text_logprobs()
    assert abs(len(entries) - seen[0].usage["completion_tokens"]) <= 1
    assert all(entry is not None and entry <= 0 for entry in entries)


def no_logprobs(seen: Sequence[Seen]) -> None:
    """None came that nobody asked for."""
    answered(seen)
    assert seen[0].logprobs() == []


def called(name: str) -> Check:
    """The tool is called with JSON arguments."""

    def check(seen: Sequence[Seen]) -> None:
        calls = seen[0].tool_calls()
        assert [call["name"] for call in calls] == [name]
        assert isinstance(json.loads(calls[0]["arguments"]), dict)
        assert seen[0].finish() == "tool_calls"

    return check


def not_called(seen: Sequence[Seen]) -> None:
    """No tool is called; text came."""
    answered(seen)
    assert seen[0].tool_calls() == []


def lists_models(seen: Sequence[Seen]) -> None:
    """The list has models in OpenAI's shape."""
    (answer,) = seen[0].answers
    assert answer["data"]
    assert all(model["object"] == "model" and model["id"] for model in answer["data"])
