"""The table in docs/loadtest.md of what one replica can yield, against its own formula."""

import re
from pathlib import Path

import pytest

from backend.simulated.profiles import PROFILES

DOCUMENT = Path(__file__).resolve().parents[4] / "docs" / "loadtest.md"
PROMPT_TOKENS = 2000
OUTPUT_TOKENS = 400
HIT_RATES = (0.0, 0.6, 1.0)
TPOT_MS = 40.0
ROW = re.compile(
    r"^\| `([a-z0-9-]+)` \|" + r" ([\d.]+) rps, ([\d,]+) tok/s, B (\d+) \|" * 3, re.MULTILINE
)


def prefill_ms(profile: str, prompt_tokens: int, hit_rate: float) -> float:
    """One request's; one that is cached whole needs none."""
    new = round(prompt_tokens * (1 - hit_rate))
    if new == 0:
        return 0.0
    return PROFILES[profile].step.prefill_ms(new, new * (prompt_tokens - new + new / 2))


def rate_rps(profile: str, prompt_tokens: int, output_tokens: int, hit_rate: float) -> float:
    """The rate at which the mean TPOT is TPOT_MS, as the document derives it."""
    step = PROFILES[profile].step
    context = prompt_tokens + output_tokens / 2
    per_sequence_ms = step.a1_ms + step.a2_ms * context
    decode = per_sequence_ms * output_tokens * TPOT_MS / 1000
    prefill = TPOT_MS * prefill_ms(profile, prompt_tokens, hit_rate) / 1000
    return (TPOT_MS - step.a0_ms) / (decode + prefill)


def test_the_table_is_what_the_formula_gives() -> None:
    """Rate, output and running sequences, for each profile and hit rate."""
    rows = ROW.findall(DOCUMENT.read_text())
    assert [row[0] for row in rows] == list(PROFILES)
    for profile, *cells in rows:
        for place, hit_rate in enumerate(HIT_RATES):
            rate = rate_rps(profile, PROMPT_TOKENS, OUTPUT_TOKENS, hit_rate)
            shown_rate, shown_output, shown_running = cells[3 * place : 3 * place + 3]
            assert float(shown_rate) == pytest.approx(rate, abs=0.051)
            output = rate * OUTPUT_TOKENS
            assert int(shown_output.replace(",", "")) == pytest.approx(output, abs=5.1)
            assert int(shown_running) == pytest.approx(output * TPOT_MS / 1000, abs=0.51)


def test_the_rate_is_a_fixed_point_of_the_step_model() -> None:
    """At it, decode steps in what prefill leaves of the time come every 40 ms."""
    step = PROFILES["h100x4-70b-fp8"].step
    rate = rate_rps("h100x4-70b-fp8", PROMPT_TOKENS, OUTPUT_TOKENS, 0.6)
    busy = rate * prefill_ms("h100x4-70b-fp8", PROMPT_TOKENS, 0.6) / 1000
    running = rate * OUTPUT_TOKENS * TPOT_MS / 1000
    decode_ms = step.a0_ms + (step.a1_ms + step.a2_ms * 2200) * running
    assert decode_ms / (1 - busy) == pytest.approx(TPOT_MS)


def test_eight_thousand_tokens_a_second_would_not_leave_time_to_decode() -> None:
    """The three figures of the document: prefill by tokens alone, whole, and the decode step."""
    step = PROFILES["h100x4-70b-fp8"].step
    rate = 8000 / OUTPUT_TOKENS
    assert rate * 800 * step.b1_ms / 1000 == pytest.approx(0.64)
    assert rate * prefill_ms("h100x4-70b-fp8", PROMPT_TOKENS, 0.6) / 1000 == pytest.approx(
        0.78, abs=0.005
    )
    running = round(8000 * TPOT_MS / 1000)
    assert step.decode_ms(running, running * 2200) == pytest.approx(47, abs=0.1)


@pytest.mark.parametrize(
    ("profile", "shape", "tokens_per_s"),
    [
        ("h100x4-70b-fp8", (128, 2048), 8400),
        ("h100x4-70b-fp8-kvfp8", (128, 2048), 9550),
        ("h100x4-70b-fp8", (500, 2000), 6940),
        ("h100x4-70b-fp8-kvfp8", (500, 2000), 7980),
    ],
)
def test_decode_heavy_shapes_come_near(
    profile: str, shape: tuple[int, int], tokens_per_s: int
) -> None:
    """The document's second list."""
    rate = rate_rps(profile, *shape, hit_rate=0.0)
    assert rate * shape[1] == pytest.approx(tokens_per_s, abs=5)
    assert f"{tokens_per_s:,}" in DOCUMENT.read_text()
