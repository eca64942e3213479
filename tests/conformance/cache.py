"""The prefix cache as usage tells of it (`captures/01b`, `08b`; sglang-facts 1 and 4)."""

from typing import Any
from uuid import uuid4

from conformance.engine import Engine


def cached(engine: Engine, text: str, **fields: Any) -> tuple[int, int]:
    """Cached and all tokens of a chat's prompt."""
    usage = engine.chat(text, max_tokens=1, **fields).json["usage"]
    return usage["prompt_tokens_details"]["cached_tokens"], usage["prompt_tokens"]


def check_a_repeated_prompt(engine: Engine) -> None:
    """All but its last token; the answer's own tokens are cached too."""
    engine.come_to_rest()
    text = f"A delta ({uuid4().hex})"
    assert cached(engine, text)[0] == 0
    again, prompt = cached(engine, text)
    assert again == prompt - 1
    ids = engine.tokens_of(prompt=f"A mouth ({uuid4().hex})")
    made = engine.generate(input_ids=ids, tokens=6).json["output_ids"]
    longer = engine.generate(input_ids=[*ids, *made, ids[0]]).json["meta_info"]
    # The last token that was made has no keys and values yet.
    assert longer["cached_tokens"] == len(ids) + 5


def check_a_shared_prefix(engine: Engine) -> None:
    """What two prompts begin with alike, to the token."""
    shared = engine.tokens_of(prompt=f"A source ({uuid4().hex}) springs from a rock")
    first, second = shared[1], shared[2]
    engine.come_to_rest()
    engine.generate(input_ids=[*shared, first, first])
    other = engine.generate(input_ids=[*shared, second, second]).json["meta_info"]
    assert other["cached_tokens"] == len(shared)


def check_salts(engine: Engine) -> None:
    """Nothing is shared across salts, nor with none; within one all is."""
    text = f"A spring ({uuid4().hex})"
    one, other = uuid4().hex, uuid4().hex
    engine.come_to_rest()
    assert cached(engine, text, cache_salt=one)[0] == 0
    again, prompt = cached(engine, text, cache_salt=one)
    assert again == prompt - 1
    assert cached(engine, text, cache_salt=other)[0] == 0
    assert cached(engine, text)[0] == 0


def check_flushing(engine: Engine) -> None:
    """An emptied cache holds nothing."""
    text = f"A well ({uuid4().hex})"
    cached(engine, text)
    assert cached(engine, text)[0] > 0
    assert engine.idle
    assert cached(engine, text)[0] == 0
