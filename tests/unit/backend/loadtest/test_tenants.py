"""Names of tenants."""

import re

import pytest

from backend.loadtest.tenants import tenant_id_of

TENANT_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


@pytest.mark.parametrize("name", ["t00", "a_b-c"])
def test_a_plain_name_keeps_its_form(name: str) -> None:
    """It is recognised in every report."""
    assert tenant_id_of(name) == f"loadtest-{name}"


@pytest.mark.parametrize("name", ["", "Client 7", "é", "x" * 80, "a.b", "a/b", "A.B"])
def test_any_name_becomes_an_id_that_weir_takes(name: str) -> None:
    """Whatever a trace calls its tenants."""
    assert TENANT_ID.fullmatch(tenant_id_of(name))


def test_two_names_never_share_an_id() -> None:
    """Also where their plain letters are the same."""
    names = ["a.b", "a/b", "A.B", "a-b", "x" * 80, "x" * 81, "client 7", "Client 7"]
    assert len({tenant_id_of(name) for name in names}) == len(names)
