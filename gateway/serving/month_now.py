"""The billing month that a tenant is in, for whoever shows what is left of a budget."""

from dataclasses import dataclass

from gateway.domain.billing_month import month_at, month_bounds
from gateway.domain.instants import ms_of
from gateway.domain.tenant import Tenant


@dataclass(frozen=True)
class MonthNow:
    """A month of the tenant's time zone. Instants are Unix milliseconds."""

    name: str
    """As `2026-11`."""
    currency: str
    now_ms: int
    ends_at_ms: int

    @property
    def left_ms(self) -> int:
        """Until budgets are whole again."""
        return max(0, self.ends_at_ms - self.now_ms)


def month_now(tenant: Tenant, now_ms: int) -> MonthNow:
    """The month in which `now_ms` lies, and what the tenant is billed in."""
    name = month_at(now_ms, tenant.time_zone)
    _, end = month_bounds(name, tenant.time_zone)
    return MonthNow(name, tenant.currency, now_ms, ms_of(end) or now_ms)
