// What went wrong on the way to the server, in words above the message field. The text in it is never touched.

const WORDS = {
  401: "You are signed out. Your text is kept: sign in in another tab, then try again.",
  403: "Your session has changed. Your text is kept: try again.",
  404: "This does not exist any more, or it is not yours.",
  413: "This is too long to be sent. Shorten it and try again; your text is kept.",
  503: "The database can't be reached. Your text is kept: try again in a few seconds.",
};
const UNREADABLE = "This could not be read, perhaps because it is too long. Your text is kept: shorten it and try again.";
const OURS = "Something went wrong on our side. Your text is kept: try again in a moment.";
const UNREACHABLE = "The server can't be reached. Your text is kept: try again in a moment.";

function say(words) {
  const line = document.createElement("p");
  line.textContent = words;
  document.getElementById("composer-problem")?.replaceChildren(line);
}

function explain(status) {
  say(WORDS[status] ?? (status < 500 ? UNREADABLE : OURS));
}

// Before htmx follows HX-Redirect: the sign-in page would take the place of what was typed.
document.addEventListener("htmx:after:request", (event) => {
  const { response } = event.detail.ctx;
  if (response.status !== 401) return;
  event.preventDefault();
  explain(401);
});

// A refusal in words says where it belongs (HX-Reswap); any other error is a page that has no place here.
document.addEventListener(
  "htmx:before:swap",
  (event) => {
    const { ctx } = event.detail;
    if (!ctx.response || ctx.response.status < 400 || ctx.hx?.reswap) return;
    event.preventDefault();
    explain(ctx.response.status);
    if (ctx.response.status === 403) renewTokens();
  },
  { capture: true },
);

// Whoever signs in again gets other form tokens, and only pages have them.
async function renewTokens() {
  const text = await fetch(location.href).then((answer) => answer.text()).catch(() => "");
  const found = new DOMParser().parseFromString(text, "text/html").querySelector("[name=csrfmiddlewaretoken]");
  for (const field of document.getElementsByName("csrfmiddlewaretoken")) field.value = found?.value ?? field.value;
}

document.addEventListener("htmx:error", () => say(UNREACHABLE));

// A stream that was open comes back by itself (hx-sse); one that could not be opened is opened again.

const STREAM = "[hx-sse\\:connect]";
const PAUSE_MS = 2000;

function lost(stream, status) {
  if (status >= 400 && status < 500) explain(status === 403 ? 404 : status); // who reads sends no form token
  if (status >= 400 && status < 500 && status !== 401) return stream.remove(); // who signs in again goes on reading
  stream.closest(".turn").setAttribute("data-offline", "");
  document.getElementById("announcer").textContent = "The connection was lost. Reconnecting.";
}

document.addEventListener("htmx:sse:error", (event) => {
  if (event.target.matches?.(STREAM)) lost(event.target, event.detail.status);
});

document.addEventListener("htmx:finally:request", (event) => {
  const { sourceElement: stream, response } = event.detail.ctx;
  if (!stream.isConnected || !stream.matches(STREAM) || response?.status === 200) return;
  lost(stream, response?.status);
  setTimeout(() => htmx.process(stream, true), PAUSE_MS);
});

// Browsers open six connections to a server at most: a tab that is not looked at keeps none, also from its beginning.
document.addEventListener("htmx:sse:after:connection", ({ detail: { connection } }) => {
  setTimeout(() => document.hidden && connection.visibilityHandler?.());
});

document.addEventListener("htmx:sse:after:connection", (event) => {
  const turn = event.target.closest?.(".turn[data-offline]");
  if (!turn) return; // what is said there now is about something else
  turn.removeAttribute("data-offline");
  document.getElementById("composer-problem")?.replaceChildren();
});
