// What the console adds to its pages where scripts run: keys, copying, and live parts that say when
// they are old. Every page works without it.
"use strict";

(() => {
  // Keys: "/" to the search field, "g" and a letter to a page, "?" for the list.
  let led = false;
  // A dialog that has just closed may hold the focus for a moment more.
  const typing = (element) => element.closest("input, select, textarea, [contenteditable], dialog[open]");

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) {
      led = false;
      return;
    }
    if (led) {
      led = false;
      const place = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
      if (place) {
        event.preventDefault();
        location.assign(place.href);
      }
    } else if (event.key === "g") {
      led = true;
      setTimeout(() => { led = false; }, 1500);
    } else if (event.key === "/") {
      const search = document.querySelector("[type=search]");
      if (search) {
        event.preventDefault();
        search.focus();
        search.select();
      }
    } else if (event.key === "?") {
      document.getElementById("keys")?.showModal();
    } else if (event.key === "Escape") {
      for (const open of document.querySelectorAll("details.menu[open]")) open.open = false;
    }
  });

  // Copying: <button data-copy="id of what is copied">.
  const showCopyButtons = () => {
    for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const source = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(source);
      button.textContent = "Selected: copy it now";
    }
  });

  // A question that was left by keyboard is not open behind one's back.
  document.addEventListener("focusin", (event) => {
    for (const open of document.querySelectorAll("[popover]:popover-open")) {
      if (!open.contains(event.target)) open.hidePopover();
    }
  });

  // A number and its "no limit": whoever says one takes back the other.
  document.addEventListener("input", (event) => {
    const box = document.getElementById(event.target.dataset?.without ?? "");
    if (box && event.target.value.trim()) box.checked = false;
  });
  document.addEventListener("change", (event) => {
    if (event.target.type !== "checkbox" || !event.target.checked || !event.target.id) return;
    const number = document.querySelector(`[data-without="${CSS.escape(event.target.id)}"]`);
    if (number) number.value = "";
  });

  // A form is sent once: of a double click the second answer would hide the first, and with it a
  // key's secret. Where an answer leaves the page as it is (a file) it can be sent again later.
  const SENT_FOR_MS = 10000;
  const sent = new Set();
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post" || event.defaultPrevented) return;
    if (sent.has(form)) {
      event.preventDefault();
      return;
    }
    sent.add(form);
    setTimeout(() => sent.delete(form), SENT_FOR_MS);
  });
  addEventListener("pageshow", () => sent.clear());

  // Live parts. A part that was not read for three turns is old, whatever the reason is.
  const readAt = new WeakMap();
  const regions = () => document.querySelectorAll("[data-live]");
  const clock = (at) => new Date(at).toISOString().slice(11, 19);

  const isFresh = (region) => {
    readAt.set(region, Date.now());
    region.classList.remove("is-stale");
    region.querySelector(".stale").hidden = true;
  };
  const reasons = new Map([[undefined, "the gateway does not answer"], [503, "the gateway answers that Postgres or Redis does not"]]);
  // The cause that a 503 names in plain text; whoever else stands between sends pages.
  const causeIn = (ctx) => {
    const isPlain = ctx?.response?.status === 503 && ctx.response.headers.get("content-type")?.startsWith("text/plain");
    return isPlain ? ctx.text?.trim().slice(0, 200) : "";
  };
  const isOld = (region, status, cause = "") => {
    const why = cause || (reasons.get(status) ?? `the gateway answers with an error (${status})`);
    const note = region.querySelector(".stale");
    if (region.classList.contains("is-stale") && note.dataset.why === why) return;
    note.dataset.why = why;
    note.textContent = `Not updated since ${clock(readAt.get(region))} UTC: ${why}. The gateway is asked again every few seconds.`;
    note.hidden = false;
    region.classList.add("is-stale");
  };
  const regionOf = (event) => event.target.closest?.("[data-live]");

  document.addEventListener("htmx:before:request", (event) => {
    // Nobody looks at a hidden tab, and nothing is asked for it.
    if (document.hidden && regionOf(event)) event.preventDefault();
  });
  document.addEventListener("htmx:after:swap", (event) => {
    const region = regionOf(event);
    const status = event.detail.ctx?.response?.status ?? 200;
    if (region && status < 400) isFresh(region);
    showCopyButtons();
  });
  for (const name of ["htmx:error", "htmx:response:error"]) {
    document.addEventListener(name, (event) => {
      const region = regionOf(event);
      const status = event.detail?.ctx?.response?.status;
      if (region) isOld(region, status >= 400 ? status : undefined, causeIn(event.detail?.ctx));
    });
  }
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return;
    for (const region of regions()) {
      const part = region.querySelector(".live-part");
      if (part) htmx.trigger(part, "every");
    }
  });
  setInterval(() => {
    if (document.hidden) return;
    for (const region of regions()) {
      const allowed_ms = 3000 * Number(region.dataset.live) + 2000;
      if (Date.now() - readAt.get(region) > allowed_ms && !region.classList.contains("is-stale")) isOld(region);
    }
  }, 1000);

  const begin = () => {
    regions().forEach((region) => readAt.set(region, Date.now()));
    showCopyButtons();
    for (const hint of document.querySelectorAll(".keys-hint")) hint.hidden = false;
    // Whoever sent a form that was refused goes on at the first field that is wrong.
    document.querySelector("main [aria-invalid=true]")?.focus();
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
