"""A tenant as its invoices need it."""

from billing.domain.invoicing.issuing import PAYMENT_TERMS_DAYS, Billed
from billing.domain.invoicing.party import Customer
from billing.domain.invoicing.tax import Tax, parse_tax_rate
from gateway.domain.tenant import Tenant

TAX_NAME = "Tax"
"""Where a tenant's profile has a rate and no name for it."""


def billed_as(tenant: Tenant, *, currency: str) -> Billed:
    """Whom an invoice in that currency is made out to now, and on what terms."""
    profile = tenant.billing_profile
    terms_days = profile.payment_terms_days
    return Billed(
        customer=Customer(
            tenant_id=tenant.id,
            name=profile.legal_name or tenant.name,
            address=profile.address,
            country=profile.country,
            tax_id=profile.tax_id,
            email=profile.email,
            reference=profile.reference,
        ),
        currency=currency,
        time_zone=tenant.time_zone,
        tax=Tax(
            rate_milli_percent=parse_tax_rate(profile.tax_rate or "0"),
            name=profile.tax_name or TAX_NAME,
            note=profile.tax_note or "",
        ),
        payment_terms_days=PAYMENT_TERMS_DAYS if terms_days is None else terms_days,
    )
