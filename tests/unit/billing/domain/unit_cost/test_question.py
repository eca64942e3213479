"""What may be asked of the unit cost."""

from fractions import Fraction

import msgspec
import pytest
from unit_cost_examples import DAY, PICO

from billing.domain.unit_cost.hosted import REFERENCE_RATES, HostedRate
from billing.domain.unit_cost.paid_time import DAY_MS, HOUR_MS
from billing.domain.unit_cost.quantities import half_up, show_decimal, show_exact
from billing.domain.unit_cost.question import Asked, CostBy, InvalidQuestion, question_of

END = DAY + 2 * DAY_MS


def asked(**changes: object) -> Asked:
    """Two days of four GPUs."""
    usual = {"since_ms": DAY, "until_ms": END, "price_per_gpu_hour": "2.35", "gpus": "4"}
    return Asked(**(usual | changes))  # type: ignore[arg-type]


def test_a_question_is_understood_exactly() -> None:
    """To the pico-unit and the millisecond."""
    found = question_of(asked(operations_cost="0.000000000001", by="hour"), now_ms=END)
    assert found.costs.price_per_gpu_hour_pico == 235 * PICO // 100
    assert (found.costs.operations_pico, found.costs.currency) == (1, "USD")
    assert found.paid is not None
    assert found.paid.gpu_ms == 4 * 48 * HOUR_MS
    assert (found.by, found.step_model.scale) == (CostBy.HOUR, Fraction(1))


def test_hours_are_said_in_five_ways() -> None:
    """In all, in GPUs, by day in a file or a list, or nobody says and workers were seen."""
    text = "date,gpu_hours\n2026-11-30,1.5\n2026-12-01,0\n"
    rows = [("2026-11-30", "1.5"), ("2026-12-01", "0")]
    for ways, by_day in (
        ({"pool_hours": "1.5"}, False),
        ({"hours_file": text}, True),
        ({"hours": rows}, True),
    ):
        paid = question_of(asked(gpus=None, **ways), now_ms=END).paid
        assert paid is not None
        assert (paid.gpu_ms, paid.by_day) == (HOUR_MS * 3 // 2, by_day)
    assert question_of(asked(gpus=None, from_samples=True), now_ms=END).paid is None


def test_hosted_prices_are_named_or_said() -> None:
    """A provider of ours, a public list's, all of that list, one's own."""
    found = question_of(asked(hosted=("mine", "list:groq")), now_ms=END)
    assert found.providers == ("mine",)
    assert found.rates == {"list:groq": REFERENCE_RATES["groq"]}
    found = question_of(asked(hosted=("list",)), now_ms=END)
    assert len(found.rates) == len(REFERENCE_RATES)
    own = {"currency": "EUR", "hosted_input": "0.59", "hosted_output": "0.000001"}
    found = question_of(asked(**own), now_ms=END)
    assert found.rates == {"hosted": HostedRate(590_000, 1)}


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"since_ms": END}, "since"),
        ({"since_ms": 0}, "since"),
        ({"until_ms": END + 1}, "until"),
        ({"since_ms": END - 401 * DAY_MS}, "since"),
        ({"by": "colour"}, "by"),
        ({"model": ""}, "model"),
        ({"model": "a\0"}, "model"),
        ({"model": "m" * 201}, "model"),
        ({"currency": "usd"}, "currency"),
        ({"price_per_gpu_hour": "-1"}, "price_per_gpu_hour"),
        ({"price_per_gpu_hour": "1e3"}, "price_per_gpu_hour"),
        ({"operations_cost": " 1"}, "operations_cost"),
        ({"operations_cost": "0.0000000000001"}, "operations_cost"),
        ({"gpus": None}, "pool_hours"),
        ({"gpus": "four"}, "gpus"),
        ({"gpus": "\u0664"}, "gpus"),
        ({"pool_hours": "1"}, "gpus"),
        ({"from_samples": True}, "from_samples"),
        ({"gpus": None, "hours_file": "x"}, "hours_file"),
        ({"gpus": None, "hours": [("2026-11-30", "1")]}, "hours"),
        ({"profile": "h200"}, "profile"),
        ({"coefficients": {"a9": "1"}}, "coefficient"),
        ({"hosted": ("list:nobody",)}, "hosted"),
        ({"hosted": ("",)}, "hosted"),
        ({"hosted": ("groq",), "currency": "EUR"}, "hosted"),
        ({"hosted_input": "1"}, "hosted_output"),
        ({"hosted_output": "1"}, "hosted_input"),
        ({"hosted_input": "1", "hosted_output": "0.0000001"}, "hosted_output"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, object], name: str) -> None:
    """By its field."""
    with pytest.raises(InvalidQuestion) as found:
        question_of(asked(**changes), now_ms=END)
    assert found.value.name == name
    assert "\n" not in str(found.value)


def test_numbers_for_reading() -> None:
    """A half goes away from zero; what is exact is told whole."""
    assert [half_up(Fraction(n, 2)) for n in (-3, -1, 0, 1, 3)] == [-2, -1, 0, 1, 2]
    assert show_decimal(Fraction(-1, 3), decimals=2) == "-0.33"
    assert show_decimal(Fraction(5, 2), decimals=0) == "3"
    assert (show_exact(Fraction("0.0000009")), show_exact(Fraction(80))) == ("0.0000009", "80")


def test_a_question_is_plain() -> None:
    """Its ways are a StrEnum, whose values are what people write."""
    assert msgspec.json.encode(list(CostBy)) == b'["tenant","model","class","day","hour"]'
