"""The shapes of the answers about usage, for the OpenAPI document. Times are RFC 3339 in UTC."""

from typing import Literal

import msgspec

from billing.postgres.usage_records import UsageSum
from gateway.http.openapi_answers import Instant


class UsageSumAnswer(UsageSum, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Usage of one `group`. Token counts cover all requests, the `billable_` ones those that are
    paid for; of `provisional_requests` another gateway gave the account."""


class _Report(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    group_by: str
    time_zone: str
    since: Instant
    until: Instant | None
    complete: bool
    complete_through: Instant | None
    provisional_requests: int


class OwnUsageAnswer(_Report, forbid_unknown_fields=True, kw_only=True):
    """`GET /v1/usage`."""

    object: Literal["usage"]
    data: list[UsageSumAnswer]


class UsageReportAnswer(_Report, forbid_unknown_fields=True, kw_only=True):
    """`GET /billing/v1/usage`; it is never cut into pages."""

    items: list[UsageSumAnswer]
    next_cursor: str | None
