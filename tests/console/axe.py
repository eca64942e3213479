"""Deque's axe-core: what of a page people with other senses or hands cannot use."""

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

SOURCE = Path(__file__).resolve().parent / "node_modules" / "axe-core" / "axe.min.js"
GRAVE = ("serious", "critical")


def grave_findings(page: Page) -> list[str]:
    """Serious and critical findings on the page as it is, each with where it is."""
    # Evaluated by the debugger, so the page's own policy, which allows no such script, stays.
    page.evaluate(SOURCE.read_text() + "; undefined")
    result: dict[str, Any] = page.evaluate("async () => await axe.run(document)")
    assert result["passes"], "axe looked at nothing"
    return [
        f"{found['impact']} {found['id']}: {node['html'][:160]}"
        for found in result["violations"]
        if found["impact"] in GRAVE
        for node in found["nodes"]
    ]
