"""The simulated tokenizer and text."""

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


def test_template() -> None:
    """Markers are one token each, and the last message may stay open."""
    messages = [Message("user", "hi there"), Message("assistant", "yes")]
    assert len(vocabulary.encode_chat(messages, continue_final=False).tokens) == 8
    open_ended = vocabulary.encode_chat(messages, continue_final=True)
    assert open_ended.text.endswith("<|assistant|>yes")


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
