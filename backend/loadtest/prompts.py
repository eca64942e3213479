"""Prompts of exact token counts, made from a request's segments and nothing else.

A segment's first token is its own and the rest is a stretch of one long text, begun at a place
that its key decides. So prompts share what their segments share, from the first token, and making
one is little more than copying memory. Two keys begin with the same token by accident once in
billions of pairs, and then differ in the next.

Text counts exactly with the simulated workers' tokenizer (a word is a token). The words are single
tokens of a real tokenizer too (all are in SmolLM2's vocabulary), but there a segment's first takes
up to twelve.
"""

import random
import re
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from typing import TypeVar

from backend.loadtest.plan import PlannedRequest, Segment

_WORDS = re.findall(
    "[a-z]+",
    """
about above after again alone along among apple arena arrow award basic beach begin below berry
black blend block board brain brave bread break brick brief bring broad brown brush build cabin
candy carry catch chain chair chalk charm chart cheap chest chief child civic claim clean clear
climb clock close cloud coach coast color count cover craft cream cross crowd crown daily dance
depth dream dress drink drive eager early earth eight entry equal event every exact extra faith
field fight final first floor focus force forty frame fresh front fruit giant glass globe grace
grain grand grass great green group guard guess guide happy heart heavy honey horse hotel house
human ideal image index inner issue joint judge juice knife large laugh learn level light limit
local lucky lunch magic major maple march match maybe metal model money month motor mount mouth
movie music night noble noise north novel ocean offer olive orbit order outer owner paint panel
paper party peace phone photo piano pilot pitch place plain plane plant plate point pound power
press price pride prime print prize proof proud queen quick quiet radio raise range rapid reach
ready right river roads rough round route royal rural scale scene scope score sense seven shade
shape share sharp sheet shelf shell shine shirt short sight skill sleep slice small smart smile
smoke solid solve sound south space spare speak speed spend sport stage stand start state steam
steel stick still stock stone store storm story study style sugar sweet table taste teach thank
theme there thick thing think third three tiger title today topic total touch tower track trade
trail train treat trend trial tribe truck trust truth uncle under union unity upper urban usual
value video visit vital voice watch water wheel white whole woman world worth wound write young
""",
)
_WORD_CHARACTERS = 6
"""A space and five letters, all the same so that a place in the text can be reckoned."""
_TOKEN_BYTES = 4
_POOL_TOKENS = 1 << 18
_POOL_SEED = 20_261_129
Pool = TypeVar("Pool", str, bytes)


@dataclass(frozen=True, slots=True)
class PromptText:
    """The prompts of one run.

    Another salt gives other text with the same sharing: a run that has its own finds nothing of an
    earlier run in a worker's cache.
    """

    salt: str = ""

    def text(self, request: PlannedRequest) -> str:
        """The prompt as words, each with a space before it."""
        return "".join(_segment_text(segment, self.salt) for segment in request.segments)

    def messages(self, request: PlannedRequest) -> list[dict[str, str]]:
        """The prompt as one message of the user; a chat template adds its own tokens to it."""
        return [{"role": "user", "content": self.text(request)}]

    def token_ids(self, request: PlannedRequest) -> bytes:
        """The prompt as token ids without any text: four bytes each, little-endian."""
        return b"".join(_segment_ids(segment, self.salt) for segment in request.segments)


def _segment_text(segment: Segment, salt: str) -> str:
    if segment.tokens < 1:
        return ""
    first, place = _first_and_place(segment, salt)
    rest = _stretch(_word_pool(), place, segment.tokens - 1, _WORD_CHARACTERS)
    return f" {first.hex()}{rest}"


def _segment_ids(segment: Segment, salt: str) -> bytes:
    if segment.tokens < 1:
        return b""
    first, place = _first_and_place(segment, salt)
    rest = _stretch(_id_pool(), place, segment.tokens - 1, _TOKEN_BYTES)
    return first[:_TOKEN_BYTES] + rest


def _stretch(pool: Pool, place: int, tokens: int, size: int) -> Pool:
    """So many tokens of the pool, each of `size`, from a place on; its end is followed by its
    beginning."""
    piece = pool[place * size : (place + tokens) * size]
    missing = tokens * size - len(piece)
    return piece + (pool * (missing // len(pool) + 1))[:missing] if missing else piece


def _first_and_place(segment: Segment, salt: str) -> tuple[bytes, int]:
    """What a segment begins with, and where in the long text it goes on."""
    digest = blake2b(f"{salt}\n{segment.key}".encode(), digest_size=10).digest()
    return digest[:6], int.from_bytes(digest[6:], "little") % _POOL_TOKENS


@cache
def _word_pool() -> str:
    words = random.Random(_POOL_SEED).choices(_WORDS, k=_POOL_TOKENS)  # noqa: S311 - text, no secret
    return "".join(f" {word}" for word in words)


@cache
def _id_pool() -> bytes:
    return random.Random(_POOL_SEED).randbytes(_TOKEN_BYTES * _POOL_TOKENS)  # noqa: S311 - no secret
