"""What new prices would do to a tenant's bill, as the command line and the console show it."""

from billing.domain.money import show_amount
from billing.domain.price_effect import Effect
from gateway.administration.views import View
from gateway.domain.instants import shown as shown_instant


def effect_view(effect: Effect) -> View:
    """Amounts are exact texts in the tenant's currency; `cost` is what the use did cost."""

    def shown(pico: int) -> str:
        return show_amount(pico, effect.currency)

    return {
        "at": shown_instant(effect.at_ms),
        "tenant_id": effect.tenant_id,
        "currency": effect.currency,
        "requests": effect.requests,
        "cost": shown(effect.cost_pico),
        "at_prices_before": shown(effect.before_pico),
        "at_prices_after": shown(effect.after_pico),
        "difference": shown(effect.after_pico - effect.before_pico),
        "unpriced_before": effect.unpriced_before,
        "unpriced_after": effect.unpriced_after,
    }
