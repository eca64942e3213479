"""A worker's address is checked when it is registered."""

import pytest
from tenant_examples import a_worker

from gateway.administration.checks import check_worker
from gateway.errors import Unprocessable

BAD_URLS = ["http://a..b", "http://" + "x" * 64, "http://x y", "http://%zz", "http://."]
BAD_URLS += ["http://[::1", "http://h:1\n", "http://h?", "http://h#", "http://@h"]
BAD_URLS += ["http://127.1:9", "http://2130706433:9", "http://0x7f.1", "http://127.0.0.1.5"]
BAD_URLS += ["http://127.0.0.01"]


@pytest.mark.parametrize("url", BAD_URLS)
def test_an_address_that_cannot_be_asked_is_refused(url: str) -> None:
    """One typing error must not become a gateway that does not start."""
    with pytest.raises(Unprocessable):
        check_worker(a_worker("w9", url=url))


@pytest.mark.parametrize(
    "url",
    ["http://10.0.0.7:30000", "https://sglang-0.pool.svc", "http://[::1]:9", "http://my_host"],
)
def test_an_ordinary_address_is_taken(url: str) -> None:
    """Names, both kinds of address, ports."""
    assert check_worker(a_worker("w9", url=url)).url == url
