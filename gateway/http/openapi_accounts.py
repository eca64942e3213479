"""What the admin API answers of accounts, for the OpenAPI document."""

from typing import Literal

import msgspec

from gateway.domain.permissions import Permission
from gateway.http.openapi_answers import Instant, UserAnswer


class _Answer(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    pass


class TokenAnswer(_Answer):
    """A live token. Its secret was in the answer that made it, and is in no other."""

    name: str
    scopes: list[Permission] | None
    created_at: Instant
    expires_at: Instant | None
    last_used_at: Instant | None
    """To the minute."""


class TokensAnswer(_Answer):
    """A user's live tokens."""

    items: list[TokenAnswer]


class SessionAnswer(_Answer):
    """A live session; `address` is where it was begun from."""

    id: str
    created_at: Instant
    seen_at: Instant
    """To the minute."""
    expires_at: Instant
    address: str | None


class SessionsAnswer(_Answer):
    """A user's live sessions, the latest first."""

    items: list[SessionAnswer]


class EndedAnswer(_Answer):
    """How many sessions were ended."""

    ended: int


class CallerAnswer(_Answer):
    """Who calls and what they may do. `csrf` goes with every change made in this session, as
    `x-csrf-token`; null for a token, which needs none."""

    user: UserAnswer
    permissions: list[Permission]
    via: Literal["token", "session"]
    csrf: str | None
