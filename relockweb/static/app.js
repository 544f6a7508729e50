"use strict";
// Reads the page again while somebody looks at it, and replaces what has changed. The server made and escaped
// all of it.
(() => {
  const main = document.querySelector("main");
  const silent = document.getElementById("silent");
  const pause = () => (Number(main.dataset.seconds) || 10) * 1000; // shorter while the page shows a failed read
  let due = 0;

  async function look() {
    clearTimeout(due);
    if (document.hidden) return; // visibilitychange goes on
    try {
      const answer = await fetch(location.href, { signal: AbortSignal.timeout(10000) });
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
      if (!fresh) throw new Error("status " + answer.status);
      merge(main, fresh);
      silent.hidden = true;
    } catch (e) {
      silent.textContent = "The dashboard does not answer (" + e.message + "). This page shows old data.";
      silent.hidden = false;
    }
    clearTimeout(due);
    due = setTimeout(look, pause());
  }

  // merge makes old like fresh, and leaves what is the same: focus, selection and scrolling stay.
  function merge(old, fresh) {
    for (const a of [...old.attributes]) if (!fresh.hasAttribute(a.name)) old.removeAttribute(a.name);
    for (const a of fresh.attributes) if (old.getAttribute(a.name) !== a.value) old.setAttribute(a.name, a.value);
    const keyed = new Map();
    for (const c of old.children) if (c.dataset.key !== undefined) keyed.set(c.dataset.key, c);
    let at = old.firstChild;
    for (const next of [...fresh.childNodes]) {
      const key = next.dataset?.key;
      const known = key === undefined ? at : keyed.get(key);
      if (!known || !alike(known, next)) {
        old.insertBefore(document.importNode(next, true), at);
        continue;
      }
      keyed.delete(key);
      if (known === at) at = at.nextSibling;
      else old.insertBefore(known, at);
      if (known.nodeType === Node.ELEMENT_NODE) merge(known, next);
      else if (known.data !== next.data) known.data = next.data;
    }
    while (at) {
      const gone = at;
      at = at.nextSibling;
      gone.remove();
    }
  }

  function alike(a, b) {
    return a.nodeName === b.nodeName && a.dataset?.key === b.dataset?.key;
  }

  document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
  due = setTimeout(look, pause());
})();
