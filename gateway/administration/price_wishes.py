"""A price that somebody wants to be set: its fields, and what they must be."""

from dataclasses import dataclass
from typing import Any

from billing.domain.money import PICO_DIGITS, InvalidAmount, parse_amount, show_amount
from billing.domain.price_book import PRICE_PICO_MAX, REQUEST_PICO_MAX, Price
from gateway.administration.checks import check_currency
from gateway.administration.hosted_prices import parse_price
from gateway.domain.tenant import RequestClass
from gateway.errors import Unprocessable

SELF = "self"
CLASSES = tuple(each.value for each in RequestClass)


@dataclass(frozen=True, kw_only=True)
class NewPrice:
    """A price to be set, in pico-units of the currency per token and per request."""

    model: str
    provider: str = SELF
    currency: str
    tenant_id: str | None = None
    plan: str | None = None
    """Whose it is: with neither it is a list price."""
    request_class: str | None = None
    """None: of both classes."""
    input_pico: int
    cached_input_pico: int | None
    """None: a cached prompt token costs what any prompt token costs."""
    output_pico: int
    reasoning_pico: int | None = None
    """None: a reasoning token costs what any output token costs."""
    request_pico: int = 0
    withdrawn: bool = False
    """It ends its line: there are no prices, and what is here for them says nothing."""

    def is_as(self, price: Price) -> bool:
        """Whether `price` charges exactly this."""
        return all(
            getattr(price, name) == getattr(self, name) for name in self.__dataclass_fields__
        )

    def columns(self) -> dict[str, Any]:
        """As the table has it."""
        values = dict(vars(self))
        values["class"] = values.pop("request_class")
        if self.withdrawn:
            values |= {"input_pico": None, "output_pico": None}
        return values


def withdrawal(
    *,
    model: str,
    provider: str = SELF,
    currency: str,
    tenant_id: str | None = None,
    plan: str | None = None,
    request_class: str | None = None,
) -> NewPrice:
    """What ends that line of prices."""
    return NewPrice(
        model=model,
        provider=provider,
        currency=currency,
        tenant_id=tenant_id,
        plan=plan,
        request_class=request_class,
        input_pico=0,
        cached_input_pico=None,
        output_pico=0,
        withdrawn=True,
    )


@dataclass(frozen=True, kw_only=True)
class PriceTexts:
    """A price as people write it: texts in decimal digits, per million tokens and per request."""

    model: str
    provider: str = SELF
    currency: str = "USD"
    tenant_id: str | None = None
    plan: str | None = None
    request_class: str | None = None
    input: str | None = None
    cached_input: str | None = None
    output: str | None = None
    reasoning: str | None = None
    request: str | None = None
    withdrawn: bool = False


def read_price(texts: PriceTexts, *, option: str = "") -> NewPrice:
    """The price that `texts` say. Raises Unprocessable naming the field, `option` before it: one
    that is missing is never taken for 0."""
    currency = check_currency(texts.currency)
    amounts = ("input", "cached_input", "output", "reasoning", "request")
    given = {name: getattr(texts, name) for name in amounts if getattr(texts, name) is not None}
    if texts.withdrawn:
        for name in given:
            raise _wrong(option, name, "must be absent: what is withdrawn has no price")
    else:
        for name in ("input", "output"):
            if name not in given:
                raise _wrong(option, name, "is missing; '0' makes it free")
    found = {
        name: parse_price(
            text, field=_named(option, name), currency=currency, pico_max=PRICE_PICO_MAX
        )
        for name, text in given.items()
        if name != "request"
    }
    request = texts.request
    return NewPrice(
        model=texts.model,
        provider=texts.provider,
        currency=currency,
        tenant_id=texts.tenant_id,
        plan=texts.plan,
        request_class=texts.request_class,
        input_pico=found.get("input", 0),
        cached_input_pico=found.get("cached_input"),
        output_pico=found.get("output", 0),
        reasoning_pico=found.get("reasoning"),
        request_pico=0 if request is None else _request_pico(request, currency, option),
        withdrawn=texts.withdrawn,
    )


def _request_pico(text: object, currency: str, option: str) -> int:
    try:
        pico = parse_amount(text, currency, decimals_max=PICO_DIGITS)
    except InvalidAmount as error:
        raise _wrong(option, "request", str(error)) from error
    if pico > REQUEST_PICO_MAX:
        most = show_amount(REQUEST_PICO_MAX, currency)
        raise _wrong(option, "request", f"must be at most {most} {currency}")
    return pico


def _named(option: str, name: str) -> str:
    return option + (name.replace("_", "-") if option else name)


def _wrong(option: str, name: str, why: str) -> Unprocessable:
    field = _named(option, name)
    return Unprocessable(f"{field}: {why}", param=field)
