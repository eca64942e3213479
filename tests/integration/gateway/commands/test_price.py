"""`weir price`: what tenants pay."""

import pytest
from weir_command import Weir

MODEL = ("model", "add", "m", "--context-tokens", "2048", "--max-output-tokens", "512")
SET = ("price", "set", "m", "--input", "0.40", "--output", "1.6")


@pytest.fixture
def with_model(weir: Weir) -> Weir:
    """The command, on a database that knows the model `m`."""
    weir.ok(*MODEL)
    return weir


def test_a_price_is_set_and_listed(with_model: Weir) -> None:
    """The answer of the API, on one line or in a table."""
    weir = with_model
    price = weir.json(*SET)
    assert (price["input"], price["cached_input"], price["output"]) == ("0.40", None, "1.60")
    assert (price["model"], price["provider"], price["currency"]) == ("m", "self", "USD")
    later = weir.json(
        *SET,
        "--cached-input",
        "0.1",
        "--currency",
        "JPY",
        "--effective-from",
        "2099-01-01T00:00:00Z",
    )
    assert (later["cached_input"], later["effective_from"]) == ("0.10", "2099-01-01T00:00:00.000Z")
    assert weir.json("price", "list") == {"items": [later, price], "next_cursor": None}
    page = weir.json("price", "list", "--model", "m", "--limit", "1")
    assert page["items"] == [later]
    assert weir.json("price", "list", "--cursor", page["next_cursor"])["items"] == [price]
    table = weir.ok("price", "list").splitlines()
    assert table[0].split() == [
        *("ID", "MODEL", "PROVIDER", "CURRENCY", "INPUT", "CACHED_INPUT", "OUTPUT"),
        "EFFECTIVE_FROM",
    ]
    assert table[2].split()[1:7] == ["m", "self", "USD", "0.40", "-", "1.60"]
    entry = weir.json("audit", "list", "--subject-kind", "price")["items"][0]
    assert entry["actor"].startswith("cli:")
    assert entry["after"] == later


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((*SET[:3], "--output", "1"), "--input"),
        ((*SET[:5],), "--output"),
        ((*SET[:4], "-0.4", *SET[5:]), "--input"),
        ((*SET, "--cached-input", "free"), "--cached-input"),
        ((*SET, "--currency", "ZZZ"), "currency"),
        ((*SET, "--provider", "hosted:nobody"), "hosted"),
        ((*SET, "--effective-from", "2020-01-01T00:00:00Z"), "effective_from"),
        ((*SET, "--effective-from", "tomorrow"), "--effective-from"),
        (("price", "set", "nope", *SET[3:]), "nope"),
        (("price", "list", "--cursor", "x"), "cursor"),
    ],
)
def test_a_bad_price_is_one_line(with_model: Weir, arguments: tuple[str, ...], named: str) -> None:
    """Exit status 2, naming what is at fault; nothing is stored."""
    assert named in with_model.refused(*arguments)
    assert with_model.json("price", "list")["items"] == []
