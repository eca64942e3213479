"""What the admin API's routes are given: who asks, and the verbs they may call."""

from typing import Any

from litestar import Request
from litestar.di import NamedDependency

from gateway.administration import Administration
from gateway.domain.account import User
from gateway.domain.permissions import Caller

AdminRequest = Request[User, Caller, Any]
Verbs = NamedDependency[Administration]
"""The `administration` that the router was made with."""


def actor_of(request: AdminRequest) -> str:
    """How the audit log names who asks."""
    return f"user:{request.user.email}"
