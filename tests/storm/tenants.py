"""The eight tenants of a storm, and what each asks for: five times what its limits allow."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

TIMES = 5
"""How much more is asked for than is allowed."""
NATURAL_TOKENS = 40
"""Roughly where text without a maximum ends, as the workers are told."""
PROMPT_TOKENS = 12
"""About what a prompt of the storm has with its template."""
TOKEN_S = 0.0125
START_S = 0.06
"""What a token, and what a start takes on the simulated worker."""
CURRENCY = "CHF"
"""Of tenants with a budget: nothing else has a price in it."""
PRICE = "1000"
PRICE_PICO = 10**9
"""A million tokens, and one, read or generated: a thousandth of a franc."""
PICO_PER_UNIT = 10**12
Fields = Mapping[str, int]


@dataclass(frozen=True)
class Mix:
    """One tenant: its limits and the shape of its requests."""

    name: str
    limits: Fields
    output_tokens: int
    """The largest `max_tokens`; the smallest is half of it."""
    key_limits: tuple[Fields, ...] = ({}, {})
    """Of each of its keys. Requests go to all of them alike."""
    model_limits: Fields = field(default_factory=dict)
    """Of the tenant's use of the one model."""
    choices: tuple[int, ...] = (1,)
    """`n`, drawn for each request."""
    prompts: tuple[int, ...] = (1,)
    """Prompts in a list; a list goes to the text endpoint, with one choice each."""
    without_maximum: float = 0.0
    """The share of requests that set no `max_tokens`."""
    streamed: float = 0.5
    leaving: float = 0.1
    """The share of clients that leave before the end."""
    edits: Fields | None = None
    """Limits that replace some of these in the middle."""
    budget: str | None = None
    """Monthly, in CURRENCY."""
    key_budget: str | None = None
    """Of its first key."""

    def a_second(self, seconds: float) -> float:
        """Requests a second that are TIMES what the tightest limit lets through in so long a storm:
        one that is shorter than a minute has the whole minute's allowance."""
        minute_s = min(60.0, seconds)
        sequences = sum(self.choices) / len(self.choices) * sum(self.prompts) / len(self.prompts)
        tokens = 0.75 * self.output_tokens if self.without_maximum < 1 else NATURAL_TOKENS
        allowed = []
        for limit, amount in {**self.limits, **self.model_limits}.items():
            if limit == "max_sequences":
                allowed.append(amount / (sequences * (START_S + TOKEN_S * tokens)))
            elif limit == "tpm":
                allowed.append(amount / minute_s / (PROMPT_TOKENS + sequences * tokens))
            else:
                allowed.append(amount / minute_s)
        return TIMES * min(allowed)


TENANTS = (
    Mix("one", {"max_sequences": 1}, 30),
    Mix(
        "two", {"max_sequences": 2}, 40, key_limits=({"max_sequences": 1}, {}),
        choices=(1, 1, 2), edits={"max_sequences": 4},
    ),
    Mix(
        "five", {"max_sequences": 5}, 80, choices=(1, 2, 3), edits={"max_sequences": 3},
        leaving=0.25,
    ),
    Mix(
        "eight", {"max_sequences": 8}, 80, model_limits={"max_sequences": 6},
        prompts=(1, 2, 3, 4), streamed=0.3,
    ),
    Mix("tokens", {"tpm": 1500}, 40, key_limits=({"tpm": 600}, {}), edits={"tpm": 2200}),
    Mix("open", {"tpm": 2500}, NATURAL_TOKENS, without_maximum=1.0, leaving=0.2),
    Mix("requests", {"rpm": 30}, 12, key_limits=({"rpm": 10}, {})),
    Mix(
        "mixed", {"max_sequences": 6, "tpm": 4000, "rpm": 60}, 30,
        key_limits=({"tpm": 1200, "rpm": 40}, {"max_sequences": 4}),
        model_limits={"tpm": 3500}, choices=(1, 2), budget="1.50", key_budget="0.60",
    ),
)  # fmt: skip


def limits_body(
    mix: Mix, model: str, budget: str | None, changed: Fields | None = None
) -> dict[str, object]:
    """The body of `PUT .../limits` of a tenant."""
    narrowed = {model: dict(mix.model_limits)} if mix.model_limits else {}
    return {**key_body({**mix.limits, **(changed or {})}, budget), "models": narrowed}


def key_body(limits: Fields, budget: str | None) -> dict[str, object]:
    """That of a key. Nobody waits: there is no queue to hide in."""
    return {**limits, "monthly_budget": budget, "max_queued": 0, "max_wait_ms": 0}


def in_pico(budget: str | None) -> Fields:
    """A budget as a limit of the storm's books; none where there is none."""
    return {} if budget is None else {"budget": pico_of(budget)}


def pico_of(amount: str) -> int:
    """An amount of CURRENCY, exactly."""
    return int(Decimal(amount) * PICO_PER_UNIT)
