"""`docs/unit-cost.md` says what the code does: its constants, its example, its options."""

import re
from fractions import Fraction
from pathlib import Path

from unit_cost_examples import some_work

from billing.domain.unit_cost.hosted import REFERENCE_RATES, REFERENCE_READ_ON
from billing.domain.unit_cost.quantities import show_decimal, show_exact
from billing.domain.unit_cost.question import LIST_PREFIX
from billing.domain.unit_cost.step_model import DEFAULT_PROFILE, PROFILES
from billing.postgres.unit_cost import ALIVE_GAP_MS
from gateway.commands.unit_cost import unit_cost

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "unit-cost.md").read_text()
PROFILE = re.compile(r"^\| `([\w-]+)`(?: \(default\))? \|((?: [\d.]+ \|){6})$", re.MULTILINE)
HOSTED = re.compile(
    r"^\| `list:([\w-]+)` \| ([\d.]+) \| ([\d.]+)(?:: never)? \| ([\d.]+) \|$", re.MULTILINE
)


def test_the_constants_are_the_profiles() -> None:
    """All of them, and which is the default."""
    rows = {name: cells.replace(" ", "").split("|")[:6] for name, cells in PROFILE.findall(PAGE)}
    assert rows == {
        name: [show_exact(getattr(model, each)) for each in ("a0", "a1", "a2", "b0", "b1", "b2")]
        for name, model in PROFILES.items()
    }
    assert f"| `{DEFAULT_PROFILE.name}` (default) |" in PAGE
    model = DEFAULT_PROFILE
    assert f"`batch` is {model.batch}, `scale` {model.scale}, `gpus` {model.gpus}." in PAGE


def test_the_example_of_a_request_is_what_it_works() -> None:
    """2,000 in, 1,200 of them cached, 400 out, at 30 ms a step."""
    units = DEFAULT_PROFILE.units(Fraction(30))
    parts = units.of(some_work(1, uncached=800, cached=1_200, output=400, held_ms=12_000))
    ms = [units.gpu_ms(part) / DEFAULT_PROFILE.gpus for part in parts]
    told = " + ".join(map(show_exact, ms))
    assert f"{told} = {show_exact(sum(ms, Fraction(0)))} ms: 7.2 a second" in PAGE
    assert show_decimal(1000 / sum(ms, Fraction(0)) / Fraction("6.5"), decimals=3) == "1.106"
    assert "`scale=1.106`" in PAGE


def test_the_hosted_table_is_the_list() -> None:
    """Cost of a request and both break-evens, at a knee of 6.5 a second."""
    rows = {name: tuple(cells) for name, *cells in HOSTED.findall(PAGE)}
    expected = {}
    for name, rate in REFERENCE_RATES.items():
        request = Fraction(rate.cost_pico(2_000, 400), 10**12)
        shares = [
            Fraction(price) * 4 / 3600 / Fraction("6.5") / request for price in ("2.35", "3.50")
        ]
        told = [show_decimal(share, decimals=2) for share in shares]
        expected[name] = (show_decimal(request, decimals=6), *told)
    assert rows == expected
    assert f"as read on {REFERENCE_READ_ON}" in PAGE
    assert LIST_PREFIX in PAGE


def test_its_options_are_the_commands() -> None:
    """None that is not there, and none of its own left out."""
    there = {name for option in unit_cost.params for name in option.opts}
    told = set(re.findall(r"--[a-z][a-z-]+", PAGE))
    assert told <= there
    of_every_command = {"--data-dir", "--database-url", "--redis-url"}
    assert there - told - of_every_command == set()
    assert f"A gap above {ALIVE_GAP_MS // 60_000} minutes" in PAGE
