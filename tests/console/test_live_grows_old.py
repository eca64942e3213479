"""A live part that cannot be read anew says so, and why."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from console.browser import Visitor
from console.console_roles import user
from playwright.sync_api import expect
from weir_dev import WeirDev

Come = Callable[..., AbstractContextManager[Visitor]]
NOW = "**/console/live/now"
OLD_MS = 15_000


def test_figures_that_are_old_say_why(visit: Come, console_system: WeirDev) -> None:
    """That a store is away is told from a gateway that is; nothing old is called well; and all is
    over with the first answer. The cause is the last one that was told."""
    with visit() as visitor:
        visitor.expected += ["503", "ERR_FAILED", "Failed to fetch"]
        page = visitor.log_in(user(console_system, "viewer"))
        note = page.locator("#live .stale")
        well = page.get_by_text("nothing is degraded")
        expect(well).to_be_visible(timeout=OLD_MS)
        expect(note).to_be_hidden()
        page.route(NOW, lambda route: route.fulfill(status=503, body=""))
        expect(note).to_contain_text("the gateway answers that Postgres or Redis does not")
        expect(well).to_be_hidden()
        page.unroute(NOW)
        cause = "Postgres cannot be reached"
        page.route(
            NOW, lambda route: route.fulfill(status=503, content_type="text/plain", body=cause)
        )
        expect(note).to_contain_text(f"UTC: {cause}.", timeout=OLD_MS)
        page.unroute(NOW)
        page.route(NOW, lambda route: route.abort())
        expect(note).to_contain_text("the gateway does not answer", timeout=OLD_MS)
        expect(well).to_be_hidden()
        page.unroute(NOW)
        expect(note).to_be_hidden(timeout=OLD_MS)
        expect(well).to_be_visible()
