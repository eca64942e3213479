"""Who may do what."""

from typing import Any
from unittest.mock import Mock

import pytest
from litestar import Request
from litestar.testing import RequestFactory

from gateway.domain.account import Role, User
from gateway.errors import Forbidden, Unauthorized
from gateway.http.guards import WRITERS_OPTION, role_guard


class OneUser:
    """Knows the token `good`."""

    def __init__(self, role: Role) -> None:
        self.user = User(id="user_1", email="a@b.c", role=role, created_at_ms=0)

    async def user_by_token(self, secret: str) -> User | None:
        """The user, to whoever presents `good`."""
        return self.user if secret == "good" else None


def a_request(method: str, authorization: str | None) -> Request[Any, Any, Any]:
    """A request with that method and header."""
    headers = {} if authorization is None else {"authorization": authorization}
    factory = RequestFactory()
    return (
        factory.get("/", headers=headers) if method == "GET" else factory.post("/", headers=headers)
    )


async def passes(request: Request[Any, Any, Any], role: Role, **options: object) -> None:
    """Let a guard judge the request of a user of that role."""
    await_guard = role_guard(OneUser(role))(request, Mock(opt=options))
    assert await_guard is not None
    await await_guard


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer  ", "Basic good", "Bearer bad", "good"]
)
async def test_without_a_known_token_nobody_passes(header: str | None) -> None:
    """Unauthorized, whatever is wrong with it."""
    with pytest.raises(Unauthorized):
        await passes(a_request("GET", header), Role.ADMIN)


@pytest.mark.parametrize("role", list(Role))
async def test_every_role_reads_and_admins_write(role: Role) -> None:
    """The user is then known to the route."""
    reading = a_request("GET", "bearer good")
    await passes(reading, role)
    assert reading.user.role is role
    writing = a_request("POST", "Bearer good")
    if role is Role.ADMIN:
        await passes(writing, role)
    else:
        with pytest.raises(Forbidden):
            await passes(writing, role)


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_guard_may_keep_readers_out(role: Role, method: str) -> None:
    """What is charged is seen and set by those who are named."""
    finance = frozenset({Role.ADMIN, Role.FINANCE})
    guard = role_guard(OneUser(role), readers=finance, writers=finance)
    passing = guard(a_request(method, "Bearer good"), Mock(opt={}))
    assert passing is not None
    if role in finance:
        await passing
    else:
        with pytest.raises(Forbidden):
            await passing


async def test_a_route_names_who_else_may_write_there() -> None:
    """Only those it names."""
    option = {WRITERS_OPTION: frozenset({Role.ADMIN, Role.OPERATOR})}
    await passes(a_request("POST", "Bearer good"), Role.OPERATOR, **option)
    with pytest.raises(Forbidden):
        await passes(a_request("POST", "Bearer good"), Role.VIEWER, **option)
