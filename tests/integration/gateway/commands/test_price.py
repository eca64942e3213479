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
        *("ID", "MODEL", "PROVIDER", "FOR", "CLASS", "CURRENCY", "INPUT", "CACHED_INPUT"),
        *("OUTPUT", "REASONING", "REQUEST", "EFFECTIVE_FROM"),
    ]
    assert table[2].split()[1:9] == ["m", "self", "-", "-", "USD", "0.40", "-", "1.60"]
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
        ((*SET, "--effective-from", "1969-12-31T00:00:00Z"), "effective_from"),
        ((*SET, "--reasoning", "-1"), "--reasoning"),
        ((*SET, "--request", "1e3"), "--request"),
        ((*SET, "--tenant", "nobody"), "nobody"),
        ((*SET, "--tenant", "nobody", "--plan", "gold"), "plan"),
        ((*SET, "--class", "slow"), "--class"),
        (("price", "withdraw", "m"), "withdrawn"),
        (("price", "withdraw", "m", "--class", "batch"), "to end"),
        (("price", "plan", "nobody", "gold"), "nobody"),
        (("price", "plan", "nobody"), "--none"),
        ((*SET, "--effective-from", "tomorrow"), "--effective-from"),
        (("price", "set", "nope", *SET[3:]), "nope"),
        (("price", "list", "--cursor", "x"), "cursor"),
    ],
)
def test_a_bad_price_is_one_line(with_model: Weir, arguments: tuple[str, ...], named: str) -> None:
    """Exit status 2, naming what is at fault; nothing is stored."""
    assert named in with_model.refused(*arguments)
    assert with_model.json("price", "list")["items"] == []


def test_a_tenant_a_plan_and_a_class_have_prices_of_their_own(with_model: Weir) -> None:
    """Whose it is stands in one column of the table; what was withdrawn has no price."""
    weir = with_model
    weir.ok("tenant", "create", "acme", "--name", "Acme")
    of_plan = weir.json(*SET, "--plan", "gold", "--reasoning", "2", "--request", "0.001")
    assert (of_plan["plan"], of_plan["reasoning"], of_plan["request"]) == ("gold", "2.00", "0.001")
    own = weir.json(*SET, "--tenant", "acme", "--class", "batch")
    assert (own["tenant_id"], own["class"], own["withdrawn"]) == ("acme", "batch", False)
    ended = weir.json("price", "withdraw", "m", "--tenant", "acme", "--class", "batch")
    assert (ended["input"], ended["withdrawn"]) == (None, True)
    table = weir.ok("price", "list").splitlines()
    assert [line.split()[3:5] for line in table[1:]] == [["acme", "batch"]] * 2 + [["plan", "gold"]]
    assert weir.json("price", "list", "--plan", "gold")["items"] == [of_plan]
    assert weir.json("price", "list", "--tenant", "acme")["items"] == [ended, own]
    member = weir.json("price", "plan", "acme", "gold")
    assert (member["tenant_id"], member["plan"]) == ("acme", "gold")
    left = weir.json("price", "plan", "acme", "--none", "--effective-from", "2099-01-01T00:00:00Z")
    assert left["plan"] is None
    assert weir.json("price", "plans", "--tenant", "acme")["items"] == [left, member]
    assert weir.ok("price", "plans").splitlines()[2].split()[:2] == ["acme", "gold"]
