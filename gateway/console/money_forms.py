"""What forms about money share: the currencies, and what a form is shown again for."""

from billing.domain.money import CURRENCY_EXPONENTS
from gateway.console.forms import REFUSALS
from gateway.errors import StoreUnavailable

TOLD = (*REFUSALS, StoreUnavailable)
"""What a form is shown again for, with what was typed: also where the store is away."""
CURRENCIES = [(code, code) for code in CURRENCY_EXPONENTS]
