"""Stop strings across token borders."""

from hypothesis import given
from hypothesis import strategies as st

from backend.sglang_http.stopping import StopScanner


def scan(pieces: list[str], stops: list[str]) -> tuple[str, str | None]:
    """What a reader sees of these pieces."""
    scanner, shown = StopScanner(stops), ""
    for piece in pieces:
        text, matched = scanner.push(piece)
        shown += text
        if matched is not None:
            return shown, matched
    return shown + scanner.flush(), None


def test_held_back_until_decided() -> None:
    """The beginning of a stop string is not shown before it is known not to be one."""
    scanner = StopScanner(["END"])
    assert scanner.push("the E") == ("the ", None)
    assert scanner.push("N") == ("", None)
    assert scanner.push("d") == ("ENd", None)
    assert scanner.push("EN") == ("", None)
    assert scanner.flush() == "EN"


def test_first_match_wins() -> None:
    """Of several stop strings the one that begins first ends the text."""
    assert scan(["a b c d"], ["d", "b"]) == ("a ", "b")


def test_without_stops() -> None:
    """Empty stop strings stop nothing and hold nothing back."""
    assert StopScanner([""]).push("text") == ("text", None)


@given(
    st.lists(st.text("ab", max_size=4), max_size=12),
    st.lists(st.text("ab", min_size=1, max_size=4), max_size=3),
)
def test_as_if_it_were_one_text(pieces: list[str], stops: list[str]) -> None:
    """Wherever the borders fall, the text is cut where the earliest stop string becomes complete
    in the whole, and lost nowhere."""
    shown, matched = scan(pieces, stops)
    whole = "".join(pieces)
    if matched is None:
        assert shown == whole
        assert not any(stop in whole for stop in stops)
    else:
        assert whole.startswith(shown + matched)
        assert not any(stop in shown for stop in stops)
