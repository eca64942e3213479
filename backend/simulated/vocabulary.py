"""The simulated worker's tokenizer, chat template and text.

The tokenizer is a toy, stated plainly: a token is a run of letters and digits with at most one
space before it, or any other single character; its id is a checksum. It is exact in the sense that
matters for counting: text generated here is counted the same when it is tokenised again.
"""

import asyncio
import re
import zlib
from array import array
from collections.abc import Iterator, Sequence
from itertools import islice

from backend.sglang_http.engine import Message, Prompt

VOCABULARY_SIZE = 2**31
END_OF_TEXT_ID = 2
SLICE_TOKENS = 4096
"""So many are found at a time: one to three milliseconds."""
CACHED_PIECES = 65_536
CACHED_PIECE_CHARACTERS = 32
_TOKEN = re.compile(r"<\|[a-z_]+\|>| ?[^\W_]+|.", re.DOTALL)
_WORDS = re.findall(
    "[a-z]+",
    """
    the a one of in to and for with from over under through along river stone water light wind
    morning valley mountain bridge village road field harbour forest boat lantern letter market
    garden window story winter summer evening bird fish horse child farmer sailor baker teacher
    walks carries finds follows remembers builds keeps opens crosses sings waits turns gathers
    old quiet small bright distant heavy narrow golden early late slowly gently again always
    """,
)


def encode(text: str) -> Prompt:
    """Text as tokens, at one go."""
    return Prompt(text, tuple(token for part in _slices(text) for token in part))


async def encode_in_turns(text: str, enough: int | None = None) -> Prompt:
    """Text as tokens, a slice at a time: all replicas of the process run between two of them.
    From `enough` tokens on the rest may be left out."""
    ids: list[int] = []
    for part in _slices(text):
        ids += part
        if len(part) == SLICE_TOKENS:
            await asyncio.sleep(0)
        if enough is not None and len(ids) >= enough:
            break
    return Prompt(text, tuple(ids))


def chat_text(messages: Sequence[Message], *, continue_final: bool) -> str:
    """Messages between markers, then the assistant's opening."""
    closed = messages[:-1] if continue_final else messages
    text = "".join(f"<|{message.role}|>{message.content}<|end|>" for message in closed)
    return text + "<|assistant|>" + (messages[-1].content if continue_final else "")


def text_key(prompt: bytes, seed: int) -> int:
    """What an answer's text depends on: the prompt's ids and a seed."""
    return zlib.crc32(prompt, seed & 0xFFFFFFFF)


def token_text(key: int, position: int) -> str:
    """The token at `position` of the answer with this key."""
    word = _word(key, position)
    return _TEXTS[word] if position else _FIRST_TEXTS[word]


def output_ids(key: int, tokens: int) -> "array[int]":
    """The ids of the answer's first so many tokens, as they are counted in a later prompt."""
    ids = array("I", [_IDS[_word(key, position)] for position in range(tokens)])
    if tokens:
        ids[0] = _FIRST_IDS[_word(key, 0)]
    return ids


def _word(key: int, position: int) -> int:
    return zlib.crc32(position.to_bytes(4, "little"), key) % len(_WORDS)


def _slices(text: str) -> Iterator[list[int]]:
    """The ids of its tokens, SLICE_TOKENS at a time."""
    found = _TOKEN.finditer(text)
    while part := [_IDS_OF[match[0]] for match in islice(found, SLICE_TOKENS)]:
        yield part


def _token_id(piece: str) -> int:
    return zlib.crc32(piece.encode("utf-8", "surrogatepass")) % VOCABULARY_SIZE


class _Ids(dict[str, int]):
    """Piece to id; short pieces are remembered, all forgotten once they are many."""

    def __missing__(self, piece: str) -> int:
        token = _token_id(piece)
        if len(piece) <= CACHED_PIECE_CHARACTERS:
            if len(self) >= CACHED_PIECES:
                self.clear()
            self[piece] = token
        return token


_IDS_OF = _Ids()
_TEXTS = [f" {word}" for word in _WORDS]
_FIRST_TEXTS = [word.capitalize() for word in _WORDS]
_IDS = [_token_id(text) for text in _TEXTS]
_FIRST_IDS = [_token_id(text) for text in _FIRST_TEXTS]
