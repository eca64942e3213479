"""The first log-in, and a limit that a running client feels."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Event, Thread

import pytest
from console.browser import Visitor
from console.console_roles import user
from openai import OpenAI, RateLimitError
from playwright.sync_api import expect
from weir_dev import WeirDev

Come = Callable[..., AbstractContextManager[Visitor]]
STREAMS = 6
LENGTH = 400


class Client:
    """A program with OpenAI's SDK: so many streams at a time, one after another, until it ends."""

    def __init__(self, system: WeirDev) -> None:
        self.refusals: list[RateLimitError] = []
        self._system = system
        self._sdk = OpenAI(
            base_url=system.gateway() + "/v1", api_key=system.key(), max_retries=0, timeout=60
        )
        self._over = Event()

    def ask(self, *, tokens: int) -> None:
        """One stream, read whole. Raises what the SDK raises."""
        with self._sdk.chat.completions.create(
            model=self._system.model,
            messages=[{"role": "user", "content": "Tell me of rivers."}],
            max_tokens=tokens,
            stream=True,
        ) as stream:
            for _ in stream:
                pass

    @contextmanager
    def running(self) -> Iterator[None]:
        """The streams, until the block ends."""
        threads = [Thread(target=self._stream) for _ in range(STREAMS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join()
            self._sdk.close()

    def _stream(self) -> None:
        while not self._over.is_set():
            try:
                self.ask(tokens=LENGTH)
            except RateLimitError as error:
                self.refusals.append(error)
                self._over.wait(0.2)


def test_a_limit_is_lowered_under_a_running_client(visit: Come, console_system: WeirDev) -> None:
    """Six run, the limit becomes two: what that would do is shown before it is saved; within a
    second the next request is refused by the limit's name, what ran goes on to its end; the audit
    log has both numbers."""
    seen = console_system.with_new_tenant({"max_sequences": 8, "max_queued": 0, "max_wait_ms": 0})
    client = Client(seen)
    with visit() as visitor:
        page = visitor.log_in(user(console_system, "admin"))
        page.keyboard.press("g")
        page.keyboard.press("t")
        page.wait_for_url("**/console/tenants")
        page.get_by_role("searchbox").fill(seen.tenant)
        page.locator(f'a[href="/console/tenants/{seen.tenant}"]').click()
        page.get_by_role("link", name="Change limits").click()
        page.get_by_label("Sequences at once", exact=True).first.fill("2")
        with client.running():
            eventually(lambda: seen.leases() == STREAMS)
            page.get_by_role("button", name="Show effect").click()
            row = page.get_by_role("row").filter(has_text="Sequences at once").first
            expect(row).to_contain_text("binds at once")
            expect(row.get_by_role("cell")).to_contain_text(["8", "2", str(STREAMS), "4 more"])
            assert client.refusals == []
            page.get_by_role("button", name="Save these limits").click()
            expect(page.get_by_role("status").first).to_contain_text("are saved")
            refused = _first_refusal(client, within_s=1)
            assert refused.code == "rate_limit_exceeded"
            assert "the limit of the tenant is 2 sequences at once" in refused.message
            eventually(lambda: seen.leases() <= 2 and bool(client.refusals), within_s=60)
        page.goto(f"{visitor.url}/console/audit?tenant_id={seen.tenant}")
        entry = page.locator("details.entry").filter(has_text="limits").first
        entry.locator("summary").click()
        changed = entry.get_by_role("row").filter(has_text="max_sequences")
        expect(changed.locator("del")).to_have_text("8")
        expect(changed.locator("ins")).to_have_text("2")
        expect(entry).to_contain_text(user(console_system, "admin")["email"])


def _first_refusal(client: Client, *, within_s: float) -> RateLimitError:
    """Of requests that come one after another from now on."""
    deadline = time.monotonic() + within_s
    while True:
        began = time.monotonic()
        try:
            client.ask(tokens=1)
        except RateLimitError as error:
            return error
        if began > deadline:
            pytest.fail("requests are still admitted")


def eventually(is_so: Callable[[], bool], *, within_s: float = 30) -> None:
    """Wait until it is so."""
    deadline = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)
