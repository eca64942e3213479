"""A refusal of admission as the tenant is told it: which scope, its limit, what is used of it."""

from billing.domain.money import show_amount
from gateway.domain.admission import Kind, Refused
from gateway.errors import InvalidRequest, LimitReached, QuotaExceeded
from gateway.serving.limit_headers import limit_headers
from gateway.serving.month_now import MonthNow

_UNITS = {
    Kind.SEQUENCES: "sequences at once",
    Kind.TOKENS: "tokens a minute",
    Kind.REQUESTS: "requests a minute",
}


def refusal(
    refused: Refused, month: MonthNow, *, is_least: bool = False
) -> InvalidRequest | LimitReached | QuotaExceeded:
    """The error to raise: 429 where waiting helps or the month's budget is used up, 400 where the
    demand exceeds the limit itself. `month` is the tenant's; `is_least` says that tokens and money
    of the demand are the least that the request may need, so that no guess is told as a count."""
    error: InvalidRequest | LimitReached | QuotaExceeded
    shown = refused.limits.shown
    rests_on_tokens = refused.kind in (Kind.TOKENS, Kind.BUDGET)
    least = "at least " if is_least and rests_on_tokens else ""
    if refused.kind is Kind.BUDGET:
        error = _quota_exceeded(refused, month.currency, least)
    elif refused.retry_after_ms is None:
        unit = _UNITS[refused.kind]
        error = InvalidRequest(
            f"this request needs {least}{refused.need} {unit}; the limit of the {shown} is "
            f"{refused.limit}, so it can never be admitted"
        )
    else:
        unit = _UNITS[refused.kind]
        error = LimitReached(
            f"the limit of the {shown} is {refused.limit} {unit}: {refused.used} in use, "
            f"this request needs {least}{refused.need}",
            kind=refused.kind.value,
            retry_after_ms=refused.retry_after_ms,
        )
        error.of_key = refused.limits.is_of_key
    error.headers = tuple(limit_headers(refused.uses, month))
    error.rests_on_tokens = rests_on_tokens
    return error


def _quota_exceeded(refused: Refused, currency: str, least: str) -> QuotaExceeded:
    limit, used, need = (
        f"{show_amount(pico, currency)} {currency}"
        for pico in (refused.limit, refused.used, refused.need)
    )
    message = (
        f"the monthly budget of the {refused.limits.shown} is {limit}: {used} spent or reserved, "
        f"this request may cost {least}{need}"
    )
    remaining = max(0, refused.limit - refused.used)
    if refused.retry_after_ms is None:
        return QuotaExceeded(message, remaining_pico=remaining)
    return QuotaExceeded(message, remaining_pico=remaining, retry_after_ms=refused.retry_after_ms)
