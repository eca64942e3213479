"""S13: what every provider really sends, as one canonical row."""

import json

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gateway.wire.upstream import ChunkRewriter, read_event
from gateway.wire.usage import Usage

CANONICAL = (2640, 854, 473, 672)
"""2,640 prompt tokens of which 473 were cached; 854 output tokens of which 672 were reasoning."""

PROMPT = {"prompt_tokens": 2640}
WHOLE = {"completion_tokens": 854, "total_tokens": 3494}
REASONING = {"completion_tokens_details": {"reasoning_tokens": 672}}
CACHED = {"prompt_tokens_details": {"cached_tokens": 473}}
NO_CHOICE: dict[str, object] = {"object": "chat.completion.chunk", "choices": []}
FINISH: dict[str, object] = {"index": 0, "delta": {}, "finish_reason": "stop"}

PROVIDERS: dict[str, tuple[dict[str, object], bool]] = {
    "openai": ({**NO_CHOICE, "usage": PROMPT | WHOLE | REASONING | CACHED}, False),
    "sglang": (
        {
            **NO_CHOICE,
            "usage": PROMPT
            | WHOLE
            | CACHED
            | {"reasoning_tokens": 672, "completion_tokens_details": None},
        },
        False,
    ),
    "vllm": (
        {
            **NO_CHOICE,
            "usage": PROMPT | WHOLE | CACHED | {"reasoning_tokens": 672, "prompt_logprobs": None},
        },
        False,
    ),
    "deepseek": (
        {
            "choices": [FINISH],
            "usage": PROMPT
            | WHOLE
            | REASONING
            | {"prompt_cache_hit_tokens": 473, "prompt_cache_miss_tokens": 2167},
        },
        False,
    ),
    "moonshot": (
        {"choices": [FINISH | {"usage": PROMPT | WHOLE | REASONING | {"cached_tokens": 473}}]},
        False,
    ),
    "groq": (
        {
            "choices": [FINISH],
            "x_groq": {
                "id": "req_1",
                "usage": PROMPT
                | WHOLE
                | REASONING
                | CACHED
                | {"queue_time": 0.07, "prompt_time": 0.006, "total_time": 0.028},
            },
        },
        False,
    ),
    # A real one of xAI's: 2,640 + 182 + 672 = 3,494.
    "xai": (
        {
            **NO_CHOICE,
            "usage": {
                "prompt_tokens": 2640,
                "completion_tokens": 182,
                "total_tokens": 3494,
                "prompt_tokens_details": {"text_tokens": 2640, "cached_tokens": 473},
                "completion_tokens_details": {"reasoning_tokens": 672, "audio_tokens": 0},
                "num_sources_used": 0,
            },
        },
        True,
    ),
    # Gemini's names no reasoning at all; only the total has it.
    "gemini": (
        {
            "choices": [FINISH],
            "usage": PROMPT | CACHED | {"completion_tokens": 182, "total_tokens": 3494},
        },
        True,
    ),
    "cached tokens beside the prompt": (
        {
            **NO_CHOICE,
            "usage": {"prompt_tokens": 2167} | WHOLE | REASONING | CACHED,
        },
        True,
    ),
    "both beside": (
        {
            **NO_CHOICE,
            "usage": {"prompt_tokens": 2167, "completion_tokens": 182, "total_tokens": 3494}
            | REASONING
            | CACHED,
        },
        True,
    ),
    "no output count": (
        {**NO_CHOICE, "usage": PROMPT | CACHED | REASONING | {"total_tokens": 3494}},
        True,
    ),
    "no prompt count": ({**NO_CHOICE, "usage": WHOLE | CACHED | REASONING}, True),
    "no total": (
        {**NO_CHOICE, "usage": PROMPT | CACHED | REASONING | {"completion_tokens": 854}},
        False,
    ),
}


def read(chunk: object) -> Usage | None:
    return read_event(json.dumps(chunk).encode()).usage


@pytest.mark.parametrize("provider", PROVIDERS)
def test_s13_every_provider_gives_the_same_row(provider: str) -> None:
    """S13, S26: wherever the usage is and whatever it leaves out; marked where the total had to
    tell."""
    chunk, inferred = PROVIDERS[provider]
    assert read(chunk) == Usage(*CANONICAL, inferred=inferred)


def test_s11_the_parts_of_a_prompt_add_up() -> None:
    """S11: 10,899 computed and 229,504 cached are 240,403, said either way."""
    for prompt in (240_403, 10_899):
        usage = read({**NO_CHOICE, "usage": {
            "prompt_tokens": prompt, "completion_tokens": 7, "total_tokens": 240_410,
            "prompt_tokens_details": {"cached_tokens": 229_504},
        }})  # fmt: skip
        assert usage is not None
        assert (usage.prompt_tokens, usage.cached_tokens) == (240_403, 229_504)
        assert (usage.prompt_tokens or 0) - (usage.cached_tokens or 0) == 10_899
        assert usage.output_tokens == 7


def test_cache_writes_are_prompt_too() -> None:
    """S11: 100 computed, 900 read, 500 written; the total says so, and none of it is output."""
    usage = read({**NO_CHOICE, "usage": {
        "prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 1550,
        "cache_read_input_tokens": 900, "cache_creation_input_tokens": 500,
        "prompt_tokens_details": {"cached_tokens": 900},
    }})  # fmt: skip
    assert usage == Usage(1500, 50, 900, inferred=True)


def test_s10_more_cached_than_prompt_is_left_to_the_record() -> None:
    """S10: 72,960 of 56,322; no total says that the prompt is larger, so the record clamps it."""
    usage = read({**NO_CHOICE, "usage": {
        "prompt_tokens": 56_322, "completion_tokens": 1, "total_tokens": 56_323,
        "prompt_tokens_details": {"cached_tokens": 72_960},
    }})  # fmt: skip
    assert usage == Usage(56_322, 1, 72_960)


def test_s09_an_explicit_zero_is_zero() -> None:
    """S09: no estimate in its place; but thinking alone is output (a real one of a Gemini)."""
    zero = {"prompt_tokens": 5, "completion_tokens": 0, "total_tokens": 5}
    assert read({**NO_CHOICE, "usage": zero}) == Usage(5, 0)
    thought = {"prompt_tokens": 21, "completion_tokens": 0, "total_tokens": 81} | {
        "completion_tokens_details": {"reasoning_tokens": 60}
    }
    assert read({**NO_CHOICE, "usage": thought}) == Usage(21, 60, None, 60, inferred=True)


def test_whole_numbers_are_counts_however_they_are_written() -> None:
    """A float of a count is that count, beside others or alone."""
    usage = PROMPT | WHOLE | {"prompt_tokens_details": {"cached_tokens": 473.0}} | REASONING
    assert read({**NO_CHOICE, "usage": usage}) == Usage(*CANONICAL)
    assert read({**NO_CHOICE, "usage": {"prompt_tokens": 1e3}}) == Usage(1000)


NONSENSE: list[object] = [-1, 2**31, 2**70, 1e300, 3.5, True, "11", "n/a", [3], {"tokens": 3}]


@pytest.mark.parametrize("nonsense", NONSENSE)
@pytest.mark.parametrize("name", ["prompt_tokens", "completion_tokens", "total_tokens"])
def test_one_odd_count_takes_no_other_with_it(name: str, nonsense: object) -> None:
    """S10: it is absent and flagged, so that what was seen is counted in its place; the total does
    not stand in for it, since the account is not one to trust."""
    usage = read({**NO_CHOICE, "usage": PROMPT | WHOLE | CACHED | {name: nonsense}})
    said = {"prompt_tokens": 2640, "completion_tokens": 854} | {name: None}
    assert usage == Usage(said["prompt_tokens"], said["completion_tokens"], 473, out_of_range=True)


@pytest.mark.parametrize("nonsense", NONSENSE)
@pytest.mark.parametrize(
    ("details", "name"),
    [
        ("prompt_tokens_details", "cached_tokens"),
        ("completion_tokens_details", "reasoning_tokens"),
    ],
)
def test_an_odd_detail_leaves_the_counts(details: str, name: str, nonsense: object) -> None:
    """Perfect counts beside it are perfect; nothing is made of what the total has more."""
    for odd in ({name: nonsense}, nonsense):
        if odd == {"tokens": 3}:
            continue
        usage = read({**NO_CHOICE, "usage": PROMPT | WHOLE | {"total_tokens": 4000, details: odd}})
        assert usage == Usage(2640, 854, out_of_range=True)


def test_a_number_that_no_parser_takes_is_odd() -> None:
    """Beyond a float, and longer than Python reads."""
    for number in (b"1e999", b"-" + b"9" * 10_000):
        data = b'{"choices":[],"usage":{"prompt_tokens":' + number + b',"completion_tokens":3}}'
        assert read_event(data).usage == Usage(None, 3, out_of_range=True)


@pytest.mark.parametrize("odd", ['"n/a"', "[]", "7", "null", "{}"])
def test_a_usage_that_cannot_be_read_is_none(odd: str) -> None:
    """The answer goes on; what it used is counted as where none was said."""
    data = b'{"choices":[{"index":0,"delta":{"content":"x"}}],"usage":' + odd.encode() + b"}"
    event = read_event(data)
    assert (event.error, event.has_content) == (None, True)
    assert event.usage is None or event.usage == Usage()


COUNTS = st.none() | st.integers(-5, 3000) | st.just(2**70)


@given(prompt=COUNTS, output=COUNTS, total=COUNTS, cached=COUNTS, reasoning=COUNTS)
def test_whatever_is_said_nothing_is_lost_or_negative(
    prompt: int | None,
    output: int | None,
    total: int | None,
    cached: int | None,
    reasoning: int | None,
) -> None:
    """Within what a record holds; never less than a count that was said, never a count in place of
    what was none; with a larger total exactly it."""
    usage = read({**NO_CHOICE, "usage": {
        "prompt_tokens": prompt, "completion_tokens": output, "total_tokens": total,
        "cached_tokens": cached, "reasoning_tokens": reasoning,
    }})  # fmt: skip
    assert usage is not None
    for said, kept in ((prompt, usage.prompt_tokens), (output, usage.output_tokens)):
        assert kept is None or 0 <= kept < 2**31
        if said is not None and 0 <= said < 2**31:
            assert kept is not None
            assert kept >= said
        elif said is not None:
            assert (kept, usage.out_of_range) == (None, True)
    if usage.inferred:
        assert not usage.out_of_range
        assert (usage.prompt_tokens or 0) + (usage.output_tokens or 0) == total


def test_a_client_never_sees_a_providers_own_account() -> None:
    """S01, S02: usage is hidden wherever a provider puts it, unless it was asked for."""
    rewriter = ChunkRewriter(
        response_id="c", model="m", created=1, chunk_object="o", keep_usage=False
    )
    for provider, (chunk, _) in PROVIDERS.items():
        data = json.dumps({"choices": [FINISH]} | chunk).encode()
        changed = json.loads(rewriter.rewrite(data, 0, read(chunk)))
        assert "usage" not in json.dumps(changed), provider
        assert "x_groq" not in changed
