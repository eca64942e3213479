"""What a hosted provider may be."""

import pytest
from hosted_examples import a_provider
from msgspec.structs import replace

from gateway.administration.hosted_checks import check_base_url, check_provider, same_host
from gateway.domain.hosted import HostedModel, HostedProvider
from gateway.errors import Unprocessable


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("https://api.example.com", "https://api.example.com/v1"),
        ("https://api.example.com/", "https://api.example.com/v1"),
        ("https://api.example.com/v1", "https://api.example.com/v1"),
        ("https://api.example.com/openai/v1/", "https://api.example.com/openai/v1"),
        ("http://127.0.0.1:9/api", "http://127.0.0.1:9/api"),
        ("http://[::1]:9", "http://[::1]:9/v1"),
    ],
)
def test_a_base_address_has_one_form(url: str, base: str) -> None:
    """No trailing slash; nothing but the host means the usual version."""
    assert check_base_url(url) == base
    assert check_base_url(base) == base


BAD_URLS = [
    "",
    "api.example.com",
    "ftp://h",
    "http://",
    "http://h:0",
    "http://h:99999",
    "http://a b",
]
BAD_URLS += ["http://h/v1?key=1", "http://h/v1?", "http://h/#f", "http://h#", "http://u:p@h"]
BAD_URLS += ["http://@h", "http://h/v1\n", "http://h\t/v1", "http://h/ü", "http://" + "x" * 2050]


@pytest.mark.parametrize("url", BAD_URLS)
def test_what_is_no_base_address_is_refused(url: str) -> None:
    """Also what a URL's parser would quietly repair."""
    with pytest.raises(Unprocessable) as refused:
        check_base_url(url)
    assert refused.value.param == "url"


REFUSED: list[tuple[HostedProvider, str]] = [
    (a_provider(name=""), "name"),
    (a_provider(name="-x"), "name"),
    (a_provider(name="OpenAI"), "name"),
    (a_provider(name="x" * 64), "name"),
    (a_provider(name="x\n"), "name"),
    (a_provider(models={}), "models"),
    (a_provider(models={"gpt-5": HostedModel(name="x")}), "models.gpt-5"),
    (a_provider(models={"m": HostedModel(name="")}), "models.m.name"),
    (a_provider(models={"m": HostedModel(name="a b")}), "models.m.name"),
    (a_provider(api_key="a\r\nb: c"), "api_key"),
    (a_provider(api_key=""), "api_key"),
    (a_provider(rank=2**31), "rank"),
    (a_provider(connect_timeout_ms=0), "connect_timeout_ms"),
    (a_provider(first_event_timeout_ms=-1), "first_event_timeout_ms"),
    (a_provider(stall_timeout_ms=2**31), "stall_timeout_ms"),
    (a_provider(extensions=("temperature",)), "extensions"),
    (a_provider(extensions=("cache_salt",)), "extensions"),
    (a_provider(output_limit_field="max_new_tokens"), "output_limit_field"),
]


@pytest.mark.parametrize(("provider", "param"), REFUSED)
def test_a_refusal_names_its_field(provider: HostedProvider, param: str) -> None:
    """And shows no key."""
    with pytest.raises(Unprocessable) as refused:
        check_provider(provider, {"m"})
    assert refused.value.param == param


def test_a_good_provider_comes_back_in_its_stored_form() -> None:
    """Extensions each once, in order; the address without its slash."""
    given = a_provider(url="https://h/v1/", extensions=("top_k", "min_p", "top_k"))
    checked = check_provider(given, {"m"})
    assert checked == replace(given, url="https://h/v1", extensions=("min_p", "top_k"))
    assert check_provider(checked, {"m"}) == checked


def test_a_server_is_known_by_scheme_host_and_port() -> None:
    """Its path is its own affair."""
    assert same_host("https://H:1/v1", "https://h:1/openai/v1")
    assert same_host("https://h/v1", "https://h:443/v1")
    assert not same_host("https://h:1/v1", "http://h:1/v1")
    assert not same_host("https://h:1/v1", "https://h:2/v1")
