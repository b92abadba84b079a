// The widget's frame: the page around it hands over a token, every request carries it, and no cookie is sent.

const main = document.getElementById("main");
const { widget, conversation } = main.dataset;
const here = new URL(conversation, location);
const PATIENCE = 20000;
const ABOUT_TO_EXPIRE = 30000;

// The token. Only the page around this one may hand it over, and only from the site that the token names.

let held = null;
let asked = null;
let site = null;

class Refused extends Error {}

function ask(message) {
  // Nothing secret is in a question, and the site that may answer isn't known before the first answer.
  parent.postMessage({ widget, ...message }, site ?? "*");
}

function token(stale) {
  if (held && held.token !== stale && held.until - ABOUT_TO_EXPIRE > Date.now()) return held.token;
  if (!asked) {
    asked = Promise.withResolvers();
    const { reject } = asked;
    setTimeout(() => reject(new Refused("The page around this chat doesn't answer. Reload it, then try again.")), PATIENCE);
    asked.promise.catch(() => {}).finally(() => (asked = null));
    ask({ wants: "token", stale });
  }
  return asked.promise;
}

function named(given) {
  try {
    const said = given.split(":")[0].replaceAll("-", "+").replaceAll("_", "/");
    return JSON.parse(atob(said));
  } catch {
    return {};
  }
}

window.addEventListener("message", (event) => {
  if (event.source !== parent || parent === window || event.data?.widget !== widget) return;
  if (site && event.origin !== site) return;
  const { token: given, until, refused, unreached, problem, opened } = event.data;
  if (typeof given === "string" && named(given).origin === event.origin && named(given).widget === widget) {
    site = event.origin;
    held = { token: given, until: Number(until) };
    asked?.resolve(given);
  } else if (typeof refused === "string") {
    asked?.reject(unreached ? new TypeError(refused) : new Refused(refused)); // as a network that is gone fails
  } else if (typeof problem === "string") {
    document.getElementById("composer-problem")?.replaceChildren(paragraph(problem));
  } else if (opened) {
    focus();
  }
});

// Every request of htmx and of the stream goes through here; addresses are relative to those of the conversation.

const plainFetch = window.fetch.bind(window);

window.fetch = async (address, options = {}) => {
  const send = (pass) =>
    plainFetch(new URL(address, here), {
      ...options,
      credentials: "omit",
      headers: { ...options.headers, Authorization: `Bearer ${pass}` },
    });
  try {
    const pass = await token();
    const answer = await send(pass);
    if (answer.status !== 401) return answer;
    const again = await send(await token(pass));
    if (again.status === 401) throw new Refused("This conversation has expired. Reload the page to go on.");
    return again;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return new Response(paragraph(error.message).outerHTML, {
      status: 403,
      headers: { "Content-Type": "text/html", "HX-Retarget": "#composer-problem", "HX-Reswap": "innerHTML" },
    });
  }
};

function paragraph(words) {
  const made = document.createElement("p");
  made.textContent = words;
  return made;
}

// Order matters: htmx starts on the empty page, so that it processes the conversation once; the chat's own scripts look
// for the conversation when they start; nobody can press anything before both are done.

async function begin() {
  try {
    const [answer] = await Promise.all([fetch(location.search || here), load("script:not([type])")]);
    await new Promise((resolve) => setTimeout(resolve)); // htmx starts in a task of its own, queued before this one
    const template = document.createElement("template");
    template.innerHTML = await answer.text();
    if (!answer.ok) return stuck(template.content.textContent.trim());
    // Browsers refuse autofocus in a frame of another site, and say so in the console.
    for (const field of template.content.querySelectorAll("[autofocus]")) field.removeAttribute("autofocus");
    main.hidden = true;
    main.replaceChildren(template.content);
    if (document.getElementById("turns")) await load("script[type=module]");
    htmx.process(main);
    main.hidden = false;
    ask({ wants: "ready" });
  } catch {
    stuck("The server can't be reached. Check your connection.");
  }
}

function load(which) {
  const scripts = document.getElementById("chat-scripts").content.querySelectorAll(which);
  const loaded = [...scripts].map((inert) => {
    const script = document.importNode(inert);
    script.async = false; // in their order
    return new Promise((resolve, reject) => {
      script.addEventListener("load", resolve);
      script.addEventListener("error", reject);
      document.head.append(script);
    });
  });
  return Promise.all(loaded);
}

function stuck(words) {
  const notice = paragraph(words);
  const again = document.createElement("button");
  notice.className = "notice";
  notice.setAttribute("role", "alert");
  again.className = "button quiet again";
  again.textContent = "Try again";
  again.addEventListener("click", () => location.reload());
  main.replaceChildren(notice, again);
  main.hidden = false;
}

function focus() {
  if (!matchMedia("(pointer: coarse)").matches) document.getElementById("composer-text")?.focus();
}

// Closing, forgetting, other conversations

document.getElementById("close").addEventListener("click", () => ask({ wants: "close" }));

document.addEventListener("keydown", (event) => {
  const busy = document.querySelector(".composer .stop, dialog[open]"); // Escape stops or cancels that first
  if (event.key === "Escape" && !event.defaultPrevented && !busy) ask({ wants: "close" });
});

const forgetting = document.getElementById("forgetting");
document.getElementById("forget").addEventListener("click", () => {
  forgetting.returnValue = "no";
  forgetting.showModal();
});
forgetting.addEventListener("close", () => forgetting.returnValue === "yes" && ask({ wants: "forget" }));

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='?']:not([hx-get])");
  if (!link) return;
  event.preventDefault();
  location.replace(link.href); // not a step of the host page's history
});

if (parent === window) stuck("This page belongs inside another one: it shows a chat there.");
else begin();
