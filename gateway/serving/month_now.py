"""The billing month that a tenant is in, for whoever shows what is left of a budget."""

from dataclasses import dataclass

from gateway.domain.billing_month import month_key, month_of
from gateway.domain.instants import ms_of
from gateway.domain.tenant import Tenant


@dataclass(frozen=True)
class MonthNow:
    """A month of the tenant's time zone. Instants are Unix milliseconds."""

    key: str
    """What the store keeps its money by."""
    currency: str
    now_ms: int
    ends_at_ms: int

    @property
    def left_ms(self) -> int:
        """Until budgets are whole again."""
        return max(0, self.ends_at_ms - self.now_ms)


def month_now(tenant: Tenant, now_ms: int) -> MonthNow:
    """The month in which `now_ms` lies, and what the tenant is billed in."""
    key = month_key(now_ms, tenant.time_zone, tenant.currency)
    return MonthNow(key, tenant.currency, now_ms, ms_of(month_of(key).end) or now_ms)
