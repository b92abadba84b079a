// Roster's widget: <script src="https://…/widget.js" data-widget="ID" async></script> puts a chat on a page.
// It sets no cookie and, before somebody opens it, stores nothing. What it needs of a page's policy: docs/widget.md.

(() => {
  const script = document.currentScript;
  const widget = script?.dataset.widget;
  if (!widget) return console.warn("Roster: the script has no data-widget. Copy the line from the widget's page again.");
  if (document.querySelector(`roster-widget[data-widget="${CSS.escape(widget)}"]`)) return;

  const server = new URL(script.src).origin;
  const home = new URL(`widget/${encodeURIComponent(widget)}/`, script.src).href;
  const KEY = `roster-widget-${widget}`;
  const OPEN = `${KEY}-open`;
  const ABOUT_TO_EXPIRE = 60000;

  // What is kept: in the page's own storage, or in memory where that is blocked.

  const memory = new Map();

  function storage(kind) {
    const store = () => window[kind];
    return {
      get(key) {
        try { return store().getItem(key); } catch { return memory.get(key) ?? null; }
      },
      set(key, value) {
        memory.set(key, value);
        try { store().setItem(key, value); } catch { /* memory has it */ }
      },
      drop(key) {
        memory.delete(key);
        try { store().removeItem(key); } catch { /* nothing was stored */ }
      },
    };
  }

  const kept = storage("localStorage");
  const visit = storage("sessionStorage");

  function pass() {
    try { return JSON.parse(kept.get(KEY)); } catch { return null; }
  }

  // Requests

  const UNREACHED = "The server can't be reached. Check your connection, then try again.";

  class Refused extends Error {}

  async function request(path, options = {}) {
    let answer;
    try {
      answer = await fetch(home + path, { credentials: "omit", referrerPolicy: "no-referrer", ...options });
    } catch {
      throw new Refused(UNREACHED);
    }
    const said = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Refused(said.error?.message ?? UNREACHED);
    return said;
  }

  const form = (fields) => ({ method: "POST", body: new URLSearchParams(fields), cache: "no-store" });

  let renewing = null;

  async function renewed() {
    const held = pass();
    const fresh = await request("token/", form({ token: held?.token ?? "" }));
    const other = held ? null : pass();
    if (other) return other; // another tab was faster: one browser, one visitor
    const made = { token: fresh.token, until: Date.now() + fresh.seconds * 1000 };
    kept.set(KEY, JSON.stringify(made));
    return made;
  }

  async function token(stale) {
    const held = pass();
    if (held && held.token !== stale && held.until - ABOUT_TO_EXPIRE > Date.now()) return held;
    renewing ??= renewed().finally(() => (renewing = null));
    return renewing;
  }

  async function forget() {
    const held = pass();
    if (held) await request("forget/", form({ token: held.token }));
    kept.drop(KEY);
    if (frame.src) frame.src = home;
  }

  // Whoever signs out must not leave a trace in this browser, whatever the server says.
  function signedOut() {
    forget().catch(() => {
      kept.drop(KEY);
      if (frame.src) frame.src = home;
    });
  }

  // The frame

  const frame = document.createElement("iframe");
  let heard = false; // before it spoke, the frame may still be an empty page of this site

  function tell(message) {
    frame.contentWindow?.postMessage({ widget, ...message }, server);
  }

  const answers = {
    async token({ stale }) {
      try {
        tell(await token(stale));
      } catch (refused) {
        tell({ refused: refused.message, unreached: refused.message === UNREACHED });
      }
    },
    // A frame that loads while it has the focus loses it again.
    ready() {
      if (host.shadowRoot.activeElement !== frame) return;
      frame.blur();
      focus();
    },
    close,
    forget: () => forget().catch((refused) => tell({ problem: refused.message })),
  };

  window.addEventListener("message", (event) => {
    if (event.source !== frame.contentWindow || event.origin !== server || event.data?.widget !== widget) return;
    heard = true;
    if (Object.hasOwn(answers, event.data.wants)) answers[event.data.wants](event.data);
  });

  // Forgotten in another tab: gone here too. A page that signs somebody out says so with this event.
  window.addEventListener("storage", (event) => {
    if (event.key === KEY && event.newValue === null && frame.src) frame.src = home;
  });
  document.addEventListener("roster:forget", signedOut);

  // The button and the panel, in a shadow root: the page's styles don't reach in, and its policy needs no exception.

  const STYLE = `
    :host { all: initial; --accent: oklch(from var(--brand) min(l, 0.55) c h); color-scheme: light; }
    :host([data-theme="dark"]) { color-scheme: dark; }
    button {
      position: fixed; right: 20px; bottom: 20px; z-index: 2147483001; display: grid; place-items: center;
      width: 56px; height: 56px; padding: 0; border: 0; border-radius: 50%; cursor: pointer;
      color: #fff; background: var(--accent); box-shadow: 0 4px 16px #0000003d; transition: scale 0.15s;
    }
    button:hover { scale: 1.06; }
    button:focus-visible { outline: 3px solid var(--accent); outline-offset: 3px; }
    svg { grid-area: 1 / 1; width: 26px; height: 26px; transition: opacity 0.15s, rotate 0.15s; }
    button[aria-expanded="true"] .talk, button[aria-expanded="false"] .shut { opacity: 0; rotate: 45deg; }
    .panel {
      position: fixed; right: 20px; bottom: 92px; z-index: 2147483000; width: 400px; height: min(660px, 100dvh - 112px);
      overflow: hidden; border-radius: 16px; background: #fff; box-shadow: 0 12px 40px #00000047, 0 0 0 1px #0000001a;
      transform-origin: bottom right; animation: rise 0.18s ease-out;
    }
    :host([data-theme="dark"]) .panel { background: #1c1c23; box-shadow: 0 12px 40px #000000a6, 0 0 0 1px #ffffff24; }
    .panel[hidden] { display: none; }
    iframe { display: block; width: 100%; height: 100%; border: 0; color-scheme: normal; }
    @keyframes rise { from { opacity: 0; transform: translateY(12px) scale(0.98); } }
    @media (max-width: 480px) {
      .panel { inset: 0; width: auto; height: 100dvh; border-radius: 0; }
      .panel:not([hidden]) ~ button { display: none; }
    }
    @media (prefers-reduced-motion: reduce) { button, svg, .panel { animation: none; transition: none; } }
    @media print { button, .panel { display: none; } }
  `;
  const TALK = "M21 12a8 8 0 0 1-8 8H4l2-3.5A8 8 0 1 1 21 12z";
  const SHUT = "M6 9.5l6 6 6-6";

  const host = document.createElement("roster-widget");
  const panel = document.createElement("div");
  const button = document.createElement("button");

  function icon(name, line) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    const drawn = { d: line, fill: "none", stroke: "currentColor", "stroke-width": "2" };
    for (const [key, value] of Object.entries(drawn)) path.setAttribute(key, value);
    svg.setAttribute("viewBox", "0 0 24 24");
    svg.setAttribute("class", name);
    svg.setAttribute("aria-hidden", "true");
    svg.append(path);
    return svg;
  }

  let title = "";

  function draw(look) {
    title = look.title;
    host.dataset.widget = widget;
    host.style.setProperty("--brand", look.accent);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const dress = () => (host.dataset.theme = look.theme === "auto" ? (dark.matches ? "dark" : "light") : look.theme);
    dark.addEventListener("change", dress);
    dress();

    panel.className = "panel";
    panel.id = "panel";
    panel.hidden = true;
    panel.setAttribute("role", "dialog");
    panel.setAttribute("aria-label", title);
    frame.title = title;
    frame.allow = "clipboard-write";
    panel.append(frame);

    button.type = "button";
    button.setAttribute("aria-controls", "panel");
    button.append(icon("talk", TALK), icon("shut", SHUT));
    button.addEventListener("click", () => (panel.hidden ? open() : close()));
    label();

    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    const root = host.attachShadow({ mode: "open" });
    root.adoptedStyleSheets = [sheet];
    root.append(panel, button);
    root.addEventListener("keydown", (event) => event.key === "Escape" && !panel.hidden && close());
    document.documentElement.append(host); // beside the body, which some pages replace
    if (visit.get(OPEN)) show();
  }

  function label() {
    button.setAttribute("aria-expanded", String(!panel.hidden));
    button.setAttribute("aria-label", panel.hidden ? `Open the chat: ${title}` : "Close the chat");
  }

  function show() {
    if (!frame.src) frame.src = home;
    panel.hidden = false;
    visit.set(OPEN, "yes");
    label();
  }

  function open() {
    show();
    focus();
  }

  function focus() {
    frame.focus();
    if (heard) tell({ opened: true });
  }

  function close() {
    panel.hidden = true;
    visit.drop(OPEN);
    label();
    button.focus();
  }

  request("look/").then(draw, (refused) =>
    console.warn(
      refused.message === UNREACHED
        ? `Roster: no chat is shown. Either ${server} can't be reached, or the widget does not name ${location.origin} as one of its sites.`
        : `Roster: no chat is shown. ${refused.message}`,
    ),
  );
})();
