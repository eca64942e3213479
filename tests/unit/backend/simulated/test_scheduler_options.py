"""Scheduler flags as one string: read, filled in, shown."""

import pytest

from backend.simulated.profiles import PROFILES
from backend.simulated.scheduler_options import flags_of, read_scheduler_flags, shown_flags

PROFILE = PROFILES["h100x4-70b-fp8-kvfp8"]


def test_what_is_not_named_is_the_profiles_and_sglangs() -> None:
    """Pool and context of the profile, the rest as SGLang presets it."""
    flags = flags_of(PROFILE, read_scheduler_flags(""))
    assert (flags.max_total_tokens, flags.context_length) == (1_280_000, 131_072)
    assert (flags.radix_eviction_policy, flags.enable_mixed_chunk) == ("lru", False)


def test_what_is_named_is_taken_and_shown() -> None:
    """Numbers, words and switches, in one order."""
    text = "--enable-mixed-chunk --radix-eviction-policy slru --max-total-tokens 5000"
    flags = flags_of(PROFILE, read_scheduler_flags(text))
    assert (flags.max_total_tokens, flags.radix_eviction_policy) == (5000, "slru")
    assert flags.enable_mixed_chunk
    assert shown_flags(PROFILE, flags) == (
        "--max-total-tokens 5000 --enable-mixed-chunk --radix-eviction-policy slru"
    )


def test_a_zero_is_a_value() -> None:
    """No queue at all is not no limit."""
    flags = flags_of(PROFILE, read_scheduler_flags("--max-queued-requests 0"))
    assert flags.max_queued_requests == 0


@pytest.mark.parametrize(
    "text",
    ["--no-such-flag", "--page-size 0", "--radix-eviction-policy best", "slru", "'", "-x"]
    + [f"--schedule-conservativeness {number}" for number in ("nan", "inf", "-inf", "1e999")],
)
def test_what_cannot_be_read_is_refused(text: str) -> None:
    """With one line."""
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        read_scheduler_flags(text)
