"""Counting the tokens of a chunk."""

from backend.local.runtime import chunk_tokens


def spell(text: str) -> list[int]:
    """A tokenizer of bytes."""
    return list(text.encode())


def test_chunk_tokens() -> None:
    """A chunk is one token, but for characters that were held back until they were complete."""
    assert chunk_tokens(" river", spell) == 1
    assert chunk_tokens("", spell) == 1
    assert chunk_tokens("😀", spell) == 4
    assert chunk_tokens("é", lambda _: []) == 1
