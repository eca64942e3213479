"""What is asked of single requests: ids in every form that people find them in, and the filter."""

from uuid import UUID

import pytest

from gateway.domain.request_id import request_id, upstream_id
from gateway.errors import NotFound, Unprocessable
from gateway.http.requests import read_filter, read_values, request_id_in

ID = request_id(1_800_000_000_000, 7)


@pytest.mark.parametrize(
    "text",
    [str(ID), ID.hex, f"chatcmpl-{ID}", f"cmpl-{ID}", upstream_id(ID, 1, 2), str(ID).upper()],
)
def test_an_id_is_known_in_every_form(text: str) -> None:
    """As an answer has it, bare, or as an engine's log names one of its streams."""
    assert request_id_in(text) == ID


@pytest.mark.parametrize("text", ["", "chatcmpl-", "no-id", "é" * 32, f"{ID}x", "x" * 36])
def test_what_is_no_id_is_none(text: str) -> None:
    """And so no request."""
    assert request_id_in(text) is None


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ([("tenant", "acme")], "tenant"),
        ([("model", "m"), ("model", "n")], "model"),
        ([("model", "m\x00")], "model"),
        ([("key_id", "k" * 300)], "key_id"),
        ([("class", "urgent")], "class"),
        ([("outcome", "taken_back")], "outcome"),
        ([("from", "yesterday")], "from"),
        ([("from", "2027-01-02T00:00:00Z"), ("to", "2027-01-02T00:00:00Z")], "from"),
    ],
)
def test_a_slip_of_the_pen_is_named(given: list[tuple[str, str]], param: str) -> None:
    """It would be an answer to another question."""
    with pytest.raises(Unprocessable) as refused:
        read_filter(read_values(given), held_to=None)
    assert refused.value.param == param


def test_a_tenants_user_asks_for_its_own() -> None:
    """Whether it says so or not; another's is not there."""
    for given in ({}, {"tenant_id": "acme"}):
        assert read_filter(given, held_to="acme").tenant_id == "acme"
    with pytest.raises(NotFound):
        read_filter({"tenant_id": "globex"}, held_to="acme")
    assert read_filter({}, held_to=None).tenant_id is None


def test_a_filter_is_read_whole() -> None:
    """Each parameter, with instants in UTC."""
    values = {
        "key_id": "k", "model": "m", "class": "batch", "outcome": "timed_out",
        "from": "2027-01-01T01:00:00+01:00", "to": "2027-02-01T00:00:00Z",
    }  # fmt: skip
    chosen = read_filter(read_values(values.items()), held_to=None)
    assert (chosen.api_key_id, chosen.model, chosen.outcome) == ("k", "m", "timed_out")
    assert chosen.request_class == "batch"
    assert chosen.since is not None
    assert chosen.since.isoformat() == "2027-01-01T00:00:00+00:00"
    assert isinstance(request_id_in(str(ID)), UUID)
