"""Files of prices: what they may say, and every line that is wrong."""

import pytest

from gateway.administration.price_file import LINES_MAX, FaultyFile, read_csv, read_toml
from gateway.domain.instants import shown

TOML = b"""currency = "EUR"
effective_from = 2027-01-01T00:00:00Z

[[price]]
model = "m"
input = "0.40"
output = "1.60"

# a tenant's
[[price]]
model = "m"
tenant_id = "acme"
class = "batch"
currency = "JPY"
input = "60"
cached_input = "6"
output = "240"
reasoning = "300"
request = "0.5"
effective_from = "2027-02-01T00:00:00+01:00"

[[price]]
model = "m"
plan = "gold"
withdrawn = true
"""
CSV = b"""model,tenant_id,plan,class,currency,input,cached_input,output,reasoning,request,\
withdrawn,effective_from
m,,,,EUR,0.40,,1.60,,,,2027-01-01T00:00:00Z
m,acme,,batch,JPY,60,6,240,300,0.5,,2027-02-01T00:00:00+01:00
m,,gold,,EUR,,,,,,true,2027-01-01T00:00:00Z
"""


def test_both_kinds_say_the_same() -> None:
    """Each with the line on which it begins; what a CSV leaves empty is not said."""
    of_toml, of_csv = read_toml(TOML), read_csv(b"\xef\xbb\xbf" + CSV)
    assert [line.number for line in of_toml] == [4, 10, 22]
    assert [line.number for line in of_csv] == [2, 3, 4]
    assert [line.wanted for line in of_toml] == [line.wanted for line in of_csv]
    instants = [shown(line.effective_from_ms) for line in of_toml]
    assert instants == [shown(line.effective_from_ms) for line in of_csv]
    assert instants[1] == "2027-01-31T23:00:00.000Z"
    plain, own, ended = (line.wanted for line in of_toml)
    assert (plain.currency, plain.input_pico, plain.cached_input_pico) == ("EUR", 400_000, None)
    assert (own.tenant_id, own.request_class) == ("acme", "batch")
    assert (own.reasoning_pico, own.request_pico) == (300_000_000, 5 * 10**11)
    assert (ended.plan, ended.withdrawn) == ("gold", True)


@pytest.mark.parametrize(
    ("price", "fault"),
    [
        ('input = "1"', "output"),
        ('output = "1"', "input"),
        ('input = 0.4\noutput = "1"', "input: must be a text in quotes"),
        ('input = 1\noutput = "1"', "input: must be a text in quotes"),
        ('input = "1"\noutput = "-1"', "output"),
        ('input = "1"\noutput = "1"\nreasonning = "1"', "reasonning: is no field"),
        ('input = "1"\noutput = "1"\nclass = "slow"', "class"),
        ('input = "1"\noutput = "1"\ncurrency = "ZZZ"', "currency"),
        ('input = "1"\noutput = "1"\nwithdrawn = "yes"', "withdrawn: must be true or false"),
        ('input = "1"\noutput = "1"\nwithdrawn = true', "input: must be absent"),
        ('input = "1"\noutput = "1"\neffective_from = 2027-01-01T00:00:00', "effective_from"),
        ('input = "1"\noutput = "1"\neffective_from = "soon"', "effective_from"),
        ('input = "1"\noutput = "1"\nrequest = "1e3"', "request"),
    ],
)
def test_every_line_that_is_wrong_is_told(price: str, fault: str) -> None:
    """B26, V20: by its line, and what is missing is never 0; a good line between changes
    nothing."""
    good = '[[price]]\nmodel = "m"\ninput = "1"\noutput = "1"\n'
    bad = f'[[price]]\nmodel = "m"\n{price}\n'
    with pytest.raises(FaultyFile) as refused:
        read_toml((bad + good + bad).encode())
    lines = [each.line for each in refused.value.faults]
    assert lines == [1, 1 + bad.count("\n") + 4]
    assert all(each.what.startswith(fault) for each in refused.value.faults)


@pytest.mark.parametrize(
    ("data", "line", "what"),
    [
        (b"", 0, "has no price"),
        (b"\xff", 0, "UTF-8"),
        (b"a = = 1", 1, ""),
        (b"x = 1\n[[price]]\nmodel='m'", 0, "x: is no field"),
        (b"price = 3", 0, "[[price]]"),
        (b"[[price]]\n[[price]]\nmodel = 3\n", 1, "model: is missing"),
        (b"[price]\nmodel = 'm'\n", 0, "[[price]]"),
    ],
)
def test_what_is_no_file_of_prices_is_refused(data: bytes, line: int, what: str) -> None:
    with pytest.raises(FaultyFile) as refused:
        read_toml(data)
    first = refused.value.faults[0]
    assert first.line == line
    assert what in first.what


@pytest.mark.parametrize(
    ("data", "line", "what"),
    [
        (b"", 0, "has no price"),
        (b"\xff", 0, "UTF-8"),
        (b"model,price\nm,1\n", 1, "'price'"),
        (b"model,input,output,input\n", 1, "twice"),
        (b"model,input,output\nm,1\n", 2, "output"),
        (b"model,input,output\nm,1,1,1\n", 2, "no field"),
        (b'model,input,output\nm,1,"1\n', 2, ""),
        (b"model,input,output,withdrawn\nm,1,1,yes\n", 2, "withdrawn"),
        (b"model,input,output\n,1,1\n", 2, "model: is missing"),
    ],
)
def test_what_is_no_table_of_prices_is_refused(data: bytes, line: int, what: str) -> None:
    with pytest.raises(FaultyFile) as refused:
        read_csv(data)
    first = refused.value.faults[0]
    assert first.line == line
    assert what in first.what


def test_a_file_has_an_end() -> None:
    """All are one transaction."""
    row = b"m,1,1\n"
    assert len(read_csv(b"model,input,output\n" + row * LINES_MAX)) == LINES_MAX
    with pytest.raises(FaultyFile, match=f"more than {LINES_MAX}"):
        read_csv(b"model,input,output\n" + row * (LINES_MAX + 1))
