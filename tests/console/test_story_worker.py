"""A worker dies, and whoever looks at the live page sees it."""

import os
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager

from console.browser import Visitor
from console.console_roles import user
from playwright.sync_api import expect
from weir_dev import WeirDev

Come = Callable[..., AbstractContextManager[Visitor]]
SEEN_MS, BACK_MS = 5_000, 60_000


def test_a_killed_worker_is_seen_on_the_live_page(visit: Come, console_system: WeirDev) -> None:
    """Within five seconds, without anybody loading anything; and that it is back, too."""
    with visit() as visitor:
        page = visitor.log_in(user(console_system, "operator"))
        worker = page.locator(f'[id="worker-{console_system.ready["workers"][0]["id"]}"]')
        expect(worker).to_contain_text("healthy")
        os.kill(console_system.ready["pids"]["workers"][0], signal.SIGKILL)
        expect(worker).to_contain_text("unreachable", timeout=SEEN_MS)
        expect(worker).to_contain_text("healthy", timeout=BACK_MS)
        expect(worker).not_to_contain_text("unreachable")
