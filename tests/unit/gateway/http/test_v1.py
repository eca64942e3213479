"""Which errors are OpenAI's."""

import pytest

from gateway.http.v1 import is_openais


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/v1/models", "//v1/models", "/v1/nothing"])
def test_what_the_router_reads_as_v1_is_openais(path: str) -> None:
    """Also with a slash too many: the router takes it for the same path."""
    assert is_openais(path)


@pytest.mark.parametrize("path", ["/", "/v1x", "/admin/v1", "/admin/v1/tenants", "/v2", ""])
def test_what_is_not_is_not(path: str) -> None:
    """Everything else answers with a problem."""
    assert not is_openais(path)
