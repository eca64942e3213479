"""What `weir loadtest` is asked, and what it refuses in one line before anything is sent."""

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from backend.loadtest.asked import Request, read_request
from backend.loadtest.lengths import Lengths
from backend.loadtest.measure import GoodputTargets
from backend.loadtest.options import loadtest_options


def asked(*arguments: str) -> Request:
    """The request of a command line; fails where it is refused."""
    found: list[Request] = []

    @click.command()
    @loadtest_options
    def command(**given: Any) -> int:
        found.append(read_request(given))
        return 0

    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    return found[0]


def refusal(*arguments: str) -> str:
    """The last line of what a refused command line prints."""

    @click.command()
    @loadtest_options
    def command(**given: Any) -> int:
        read_request(given)
        return 0

    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 2, result.output
    return result.output.splitlines()[-1]


RUN = ("--rate", "4", "--duration", "60")


def test_without_a_target_it_is_the_weir_of_this_folder() -> None:
    """As the other commands have it."""
    assert asked(*RUN).data_dir == Path(".weir")
    assert asked(*RUN, "--url", "http://localhost:1").data_dir is None


def test_lengths_and_targets_are_read_where_they_are_given() -> None:
    """And stay the defaults where they are not."""
    found = asked(*RUN, "--output-lengths", "fixed:20", "--targets", "ttft=500,under=4000")
    assert found.workload.output_lengths == Lengths.fixed(20)
    assert found.targets == GoodputTargets(ttft_ms=500, tpot_ms=40, prompt_tokens_under=4000)
    assert found.names_lengths
    assert asked(*RUN).targets == GoodputTargets()
    assert not asked(*RUN).names_lengths


def test_one_rate_a_list_and_a_search_are_told_apart() -> None:
    """By --sweep and --rates; a list of rates is run with or without --sweep."""
    one = asked(*RUN)
    assert (one.search, one.rates) == (False, (4.0,))
    several = asked("--sweep", "--rates", "6,4,5,5", "--duration", "60")
    assert (several.search, several.rates) == (False, (4.0, 5.0, 6.0))
    assert several.first_workload.rate_rps == 4
    assert asked("--rates", "6,4,5,5", "--duration", "60") == several
    search = asked("--sweep", *RUN, "--to", "9")
    assert (search.search, search.start_rps, search.to_rps) == (True, 4.0, 9.0)
    lowest = asked("--sweep", "--from", "2", "--duration", "60")
    assert (lowest.start_rps, lowest.from_rps) == (2.0, 2.0)
    assert lowest.first_workload.rate_rps == 2


def test_a_key_in_the_environment_is_no_key_that_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It does not forbid another target."""
    monkeypatch.setenv("WEIR_LOADTEST_API_KEY", "sk-1")
    assert asked(*RUN).data_dir == Path(".weir")
    assert asked(*RUN, "--url", "http://localhost:1").api_key == "sk-1"


@pytest.mark.parametrize(
    "url",
    [
        "ftp://user:s3cret@host",
        "user:s3cret@host",
        "http://user:s3cret",
        "http://user:s3cret@host:port",
        "http://user:s3cret@[::1",
        "http:/s3cret",
    ],
)
def test_no_mistyped_url_is_repeated(url: str) -> None:
    """Where it goes wrong, a password may be anywhere in it."""
    assert "s3cret" not in refusal(*RUN, "--url", url)


def test_a_key_that_no_header_takes_is_not_repeated() -> None:
    """It is one line all the same, as anything that cannot be meant."""
    assert "schl" not in refusal(*RUN, "--url", "http://a", "--api-key", "schlüssel")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((*RUN, "--url", "http://a", "--data-dir", "b"), "one of --url, --data-dir and --virtual"),
        ((*RUN, "--url", "nonsense"), "--url: not the URL of an HTTP server"),
        ((*RUN, "--url", "ftp://a"), "--url: not the URL of an HTTP server"),
        ((*RUN, "--url", "http://a:port"), "--url: not the URL of an HTTP server"),
        ((*RUN, "--url", "http://a", "--api-key", "schlüssel"), "--api-key takes printable ASCII"),
        ((*RUN, "--url", "http://a", "--api-key", "a\nb"), "--api-key takes printable ASCII"),
        ((*RUN, "--api-key", "k"), "--api-key goes with --url"),
        ((*RUN, "--replicas", "2"), "--replicas goes with --virtual"),
        ((*RUN, "--url", "http://a", "--limits", "{}"), "--limits goes with --data-dir"),
        ((*RUN, "--virtual", "h100x4-70b-fp8", "--speed", "2"), "--speed does not go with"),
        ((*RUN, "--to", "9"), "--to goes with --sweep"),
        (("--rates", "4,5", *RUN), "--rate does not go with --rates"),
        (("--sweep", "--rates", "4,5", *RUN), "--rate does not go with --rates"),
        (("--sweep", "--duration", "60"), "a search begins somewhere"),
        (("--sweep", *RUN, "--from", "2"), "not at both"),
        (("--sweep", *RUN, "--to", "2"), "--to is below"),
        (("--rate", "4"), "a poisson workload needs a duration"),
        (("--workload", "seedlike"), "a seedlike workload needs a trace"),
        ((*RUN, "--rate", "0"), "'--rate'"),
        ((*RUN, "--rate", "nan"), "'--rate'"),
        *(
            ((*RUN, "--sweep", option, value), f"'{option}'")
            for option in ("--timeout", "--warmup", "--start", "--speed", "--to", "--batch-share")
            for value in ("nan", "inf", "-1")
        ),
        ((*RUN, "--targets", "ttft=0"), "ttft=800,tpot=40"),
        ((*RUN, "--targets", "ttft=1,ttft=2"), "ttft=800,tpot=40"),
        ((*RUN, "--targets", "under=1.5"), "ttft=800,tpot=40"),
        (("--sweep", "--rates", "4,x"), "must be like 4,5,6.5"),
        (("--sweep", "--rates", "0,4"), "must be like 4,5,6.5"),
        ((*RUN, "--limits", "[]"), "must be a JSON object"),
        ((*RUN, "--output-lengths", "about 5"), "no distribution of lengths"),
        ((*RUN, "--bursts", "gamma:2"), "a poisson workload takes no bursts"),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: tuple[str, ...], says: str) -> None:
    """In one line that names the option."""
    assert says in refusal(*arguments)
