"""Administration: verbs without a transport, on tenants, keys, limits, models, workers, hosted
providers, prices and users.

Owns: what may be written, one transaction and one audit row for each change, revocations.
Does not own: who may call a verb (the HTTP guards do), nor how answers look.

Every verb ends within about 2 s. All raise StoreUnavailable where Postgres cannot be reached,
NotFound for a subject that does not exist, Conflict where one exists already or its state forbids
the change, and Unprocessable naming the field that cannot be accepted.
"""

from gateway.administration.audit import AuditFilters, AuditVerbs
from gateway.administration.audit_chain import ChainVerbs
from gateway.administration.audit_export import ExportVerbs
from gateway.administration.bulk_limits import BulkLimitVerbs
from gateway.administration.confirming import ConfirmVerbs
from gateway.administration.fleet import FleetVerbs
from gateway.administration.hosted import HostedVerbs
from gateway.administration.keys import KeyVerbs
from gateway.administration.limit_preview import PreviewVerbs
from gateway.administration.limits import LimitVerbs
from gateway.administration.pages import Page
from gateway.administration.price_import import ImportVerbs
from gateway.administration.price_lines import PriceLineVerbs
from gateway.administration.price_rating import RatingVerbs
from gateway.administration.price_wishes import NewPrice
from gateway.administration.restoring import RestoreVerbs
from gateway.administration.sessions import SessionVerbs
from gateway.administration.tenants import TenantVerbs
from gateway.administration.user_tokens import TokenVerbs
from gateway.administration.users import UserVerbs

__all__ = ["Administration", "AuditFilters", "NewPrice", "Page"]


class Administration(
    TenantVerbs,
    KeyVerbs,
    LimitVerbs,
    BulkLimitVerbs,
    PreviewVerbs,
    ConfirmVerbs,
    FleetVerbs,
    HostedVerbs,
    ImportVerbs,
    PriceLineVerbs,
    RatingVerbs,
    UserVerbs,
    TokenVerbs,
    SessionVerbs,
    AuditVerbs,
    ChainVerbs,
    ExportVerbs,
    RestoreVerbs,
):
    """Every administrative verb, on one engine. `actor` names who asks, for the audit log."""
