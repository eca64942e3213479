"""What msgspec finds wrong names its field."""

from typing import Any

import msgspec
import pytest

from gateway.domain.account import Role
from gateway.domain.field_errors import unprocessable_field


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    """A nested object."""

    size: int


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    """An object with each kind of fault to make."""

    name: str
    inner: Inner | None = None
    sizes: list[int] = []
    by_name: dict[str, int] = {}


class Named(msgspec.Struct):
    """An object with a closed set of values."""

    role: Role


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"name": 5}, "name"),
        ({}, "name"),
        ({"name": "a", "colour": "red"}, "colour"),
        ({"name": "a", "inner": {"size": "big"}}, "inner.size"),
        ({"name": "a", "inner": {}}, "inner.size"),
        ({"name": "a", "inner": {"size": 1, "colour": 2}}, "inner.colour"),
        ({"name": "a", "sizes": [1, "x"]}, "sizes[1]"),
        ({"name": "a", "by_name": {"x": "y"}}, "by_name[...]"),
        ([], None),
    ],
)
def test_the_path_of_the_field(fields: Any, param: str | None) -> None:
    """Dotted, down to the unknown or missing one."""
    with pytest.raises(msgspec.ValidationError) as found:
        msgspec.convert(fields, Outer)
    refused = unprocessable_field(found.value)
    assert refused.param == param
    assert refused.status == 422


def test_no_value_is_quoted() -> None:
    """It may be a password in the wrong place, and as long as the body."""
    with pytest.raises(msgspec.ValidationError) as found:
        msgspec.convert({"role": "hunter2' - at `$.x`\n" * 1000}, Named)
    refused = unprocessable_field(found.value)
    assert (refused.message, refused.param) == ("role: invalid enum value", "role")


def test_a_prefix_leads_the_path() -> None:
    """For a part that was checked by itself."""
    with pytest.raises(msgspec.ValidationError) as found:
        msgspec.convert({"size": None}, Inner)
    refused = unprocessable_field(found.value, prefix="models.m")
    assert refused.param == "models.m.size"
    assert refused.message == "models.m.size: expected `int`, got `null`"
