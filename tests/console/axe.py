"""Deque's axe-core: what of a page people with other senses or hands cannot use."""

from pathlib import Path

from playwright.sync_api import BrowserContext, Page

SOURCE = Path(__file__).resolve().parent / "node_modules" / "axe-core" / "axe.min.js"
GRAVE = ("serious", "critical")
# What passes is left in the browser: it is most of the answer, and nobody reads it.
_RUN = """async (grave) => {
    const found = await axe.run(document, { resultTypes: ["violations"] });
    return {
        looked: found.passes.length,
        grave: found.violations
            .filter((each) => grave.includes(each.impact))
            .flatMap((each) => each.nodes.map(
                (node) => `${each.impact} ${each.id}: ${node.html.slice(0, 160)}`)),
    };
}"""


def bring_axe(context: BrowserContext) -> None:
    """Have it on every page that is opened from now on."""
    # By the debugger, so the pages' own policy, which allows no such script, stays.
    context.add_init_script(path=SOURCE)


def grave_findings(page: Page) -> list[str]:
    """Serious and critical findings on the page as it is, each with where it is."""
    result = page.evaluate(_RUN, list(GRAVE))
    assert result["looked"], "axe looked at nothing"
    findings: list[str] = result["grave"]
    return findings
