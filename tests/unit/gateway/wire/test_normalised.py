"""A bound of what normalising adds, for every character that there is."""

import json
import sys
import time
from unicodedata import normalize

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gateway.wire.normalised import growth_bytes

LONGER = "\U0001d160\ufdfa\u0958\u1e9b\ufb2c\u0390"
"""Characters that become more bytes, one of them eleven times as many."""
NEAR = st.text(
    st.one_of(st.sampled_from(LONGER + "o\u0308\u0323\u304b\u3099\uac00"), st.characters())
)


@pytest.mark.parametrize("ascii_only", [True, False])
@given(text=NEAR)
def test_no_form_is_longer_than_the_bound(ascii_only: bool, text: str) -> None:
    """Whatever stands beside it, written as it is or escaped."""
    text = "".join(char for char in text if not "\ud800" <= char <= "\udfff")
    raw = json.dumps(text, ensure_ascii=ascii_only).encode()
    for form in ("NFC", "NFKC"):
        assert len(normalize(form, text).encode()) <= len(raw) + growth_bytes(raw)


@pytest.mark.parametrize("ascii_only", [True, False])
def test_every_character_is_covered(ascii_only: bool) -> None:
    """One by one, in the version of Unicode that Python has."""
    for code in range(0x80, sys.maxunicode + 1):
        char = chr(code)
        if normalize("NFKC", char) == char or 0xD800 <= code < 0xE000:
            continue
        raw = json.dumps(char, ensure_ascii=ascii_only).encode()
        assert len(normalize("NFKC", char).encode()) <= len(raw) - 2 + growth_bytes(raw), hex(code)


@pytest.mark.parametrize("text", ["plain", "漢字", "한국어", "data:image/png;base64,aGk="])
def test_most_text_does_not_grow(text: str) -> None:
    """So that the bound stays as near as bytes are."""
    assert growth_bytes(json.dumps(text, ensure_ascii=False).encode()) == 0


def test_a_run_of_marks_takes_linear_time() -> None:
    """A whole text's normalisation would sort them for minutes."""
    raw = ("\u0308\u0323" * 500_000).encode()
    began = time.process_time()
    assert growth_bytes(raw) == 0
    assert time.process_time() - began < 3.0
