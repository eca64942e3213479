"""What a tokenizer's normalisation may add to a text: a bound on tokens by bytes must know it.

Tokenizers bring text into NFC or NFKC before they cut it. Both decompose every character, reorder
marks and compose again, and composing never adds bytes; so no form is longer than all characters
decomposed one by one. That is summed here by distinct characters, in linear time: normalising a
whole text is quadratic in a run of marks. Hangul syllables always come together again.
"""

import re
from collections import Counter
from unicodedata import decomposition, normalize

_ESCAPED = re.compile(rb"\\u([0-9a-fA-F]{4})")
_ESCAPE_BYTES = 6


def growth_bytes(raw: bytes) -> int:
    """By how many bytes at most the text in this JSON grows when it is normalised."""
    growth = 0
    if not raw.isascii():
        characters = Counter(raw.decode())
        growth += sum(n * _growth(char) for char, n in characters.items() if decomposition(char))
    if b"\\u" in raw:
        # A pair of surrogates is longer than anything that its character decomposes to.
        codes = Counter(_ESCAPED.findall(raw))
        growth += sum(n * _growth(chr(int(code, 16)), _ESCAPE_BYTES) for code, n in codes.items())
    return growth


def _growth(char: str, size: int = 0) -> int:
    if not decomposition(char):
        return 0
    return max(0, len(normalize("NFKD", char).encode()) - (size or len(char.encode())))
