"""The simulated tokenizer and text."""

import asyncio
import re
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.sglang_http.engine import Message
from backend.simulated import vocabulary


@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_generated_text_is_counted_the_same(key: int, tokens: int) -> None:
    """Text of so many tokens is as many tokens again when it is tokenised."""
    text = "".join(vocabulary.token_text(key, position) for position in range(tokens))
    assert len(vocabulary.encode(text).tokens) == tokens


@given(st.text())
def test_any_text_has_tokens(text: str) -> None:
    """No character is lost: the pieces of the text are the text."""
    assert len(vocabulary.encode(text).tokens) <= len(text)
    assert bool(vocabulary.encode(text).tokens) == bool(text)


PIECE = re.compile(r"<\|[a-z_]+\|>| ?[^\W_]+|.", re.DOTALL)
PIECES = st.sampled_from(["<|user|>", "<|", "|>", "abc", " ", "a", "_", "\n", "é", "\ud800", "?"])


def at_one_go(text: str) -> tuple[int, ...]:
    """The tokenizer as it is stated: all pieces at once, each with its checksum."""
    pieces = PIECE.findall(text)
    return tuple(zlib.crc32(piece.encode("utf-8", "surrogatepass")) % 2**31 for piece in pieces)


@given(st.text() | st.lists(PIECES).map("".join), st.integers(1, 5), st.integers(1, 30))
def test_slices_change_no_token(text: str, slice_tokens: int, enough: int) -> None:
    """However small they are, whatever the cache still holds; `enough` only cuts the end off."""
    whole = at_one_go(text)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(vocabulary, "SLICE_TOKENS", slice_tokens)
        patched.setattr(vocabulary, "CACHED_PIECES", 3)
        patched.setattr(vocabulary, "CACHED_PIECE_CHARACTERS", 2)
        assert vocabulary.encode(text).tokens == whole
        assert asyncio.run(vocabulary.encode_in_turns(text)).tokens == whole
        cut = asyncio.run(vocabulary.encode_in_turns(text, enough)).tokens
    assert cut == whole[: len(cut)]
    assert min(enough, len(whole)) <= len(cut) < enough + slice_tokens


async def test_others_have_their_turns_while_a_long_text_is_tokenised() -> None:
    """One after every slice; the rest of what is refused anyway is not looked at."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    slices = 20
    text = "? " * (slices * vocabulary.SLICE_TOKENS // 2)
    assert len((await vocabulary.encode_in_turns(text)).tokens) == len(text)
    assert turns >= slices - 1
    turns = 0
    assert len((await vocabulary.encode_in_turns(text, 5)).tokens) == vocabulary.SLICE_TOKENS
    assert turns <= 2
    task.cancel()


def test_template() -> None:
    """Markers are one token each, and the last message may stay open."""
    messages = [Message("user", "hi there"), Message("assistant", "yes")]
    closed = vocabulary.chat_text(messages, continue_final=False)
    assert len(vocabulary.encode(closed).tokens) == 8
    open_ended = vocabulary.chat_text(messages, continue_final=True)
    assert open_ended.endswith("<|assistant|>yes")


def test_text_depends_on_prompt_and_seed() -> None:
    """Another prompt or seed is another text."""

    def text(prompt: bytes, seed: int) -> str:
        key = vocabulary.text_key(prompt, seed)
        return "".join(vocabulary.token_text(key, position) for position in range(20))

    assert text(b"12", 0) == text(b"12", 0)
    assert len({text(b"12", 0), text(b"21", 0), text(b"12", 1), text(b"1", 0)}) == 4


@given(st.integers(0, 2**32 - 1), st.integers(0, 60))
def test_output_is_cached_under_the_ids_that_it_has_in_a_prompt(key: int, tokens: int) -> None:
    """So a conversation's next turn finds the answer of the last one."""
    text = "".join(vocabulary.token_text(key, position) for position in range(tokens))
    assert tuple(vocabulary.output_ids(key, tokens)) == vocabulary.encode(text).tokens
