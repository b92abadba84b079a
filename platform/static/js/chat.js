// The conversation: keys, scrolling, what went wrong on the way. What is said comes from the server as HTML.

const composer = document.getElementById("composer");
const text = document.getElementById("composer-text");
const scroll = document.getElementById("scroll");

const WORDS = {
  0: "The server can't be reached. Your text is kept: try again in a moment.",
  400: "This could not be read. Shorten it or try again; your text is kept.",
  401: "You are signed out. Your text is kept: sign in in another tab, then send it again.",
  403: "Your session has changed. Your text is kept: copy it, reload the page and send it again.",
  404: "This does not exist any more, or it is not yours.",
  413: "This is too long to be sent. Shorten it and try again; your text is kept.",
  503: "The database can't be reached. Your text is kept: try again in a few seconds.",
};

function say(words) {
  const problem = document.getElementById("composer-problem");
  if (!problem) return;
  const line = document.createElement("p");
  line.textContent = words;
  problem.replaceChildren(line);
}

// Keys

const touch = matchMedia("(pointer: coarse)");

text?.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || touch.matches) return;
  event.preventDefault();
  if (composer.querySelector(".send")) composer.requestSubmit();
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.defaultPrevented || document.querySelector("dialog[open], :popover-open")) return;
  document.querySelector(".composer .stop")?.click();
});

// Requests

document.addEventListener("htmx:before:swap", (event) => {
  const { ctx } = event.detail;
  if (!ctx.response) return;
  const { status, raw } = ctx.response;
  // A refusal in words says where it belongs (HX-Reswap); anything else is a page that has no place here.
  if (raw.redirected || (status >= 400 && !ctx.hx?.reswap)) {
    event.preventDefault();
    say(raw.redirected ? WORDS[401] : (WORDS[status] ?? WORDS[status >= 500 ? 503 : 400]));
  } else if (ctx.sourceElement === composer && status < 400) {
    sent(ctx.request.body);
  }
});

function sent(body) {
  const typed = (value) => (value ?? "").replace(/\r\n/g, "\n");
  const fromField = !body.get("starter") && !body.get("retry");
  if (fromField && typed(body.get("text")) === typed(text.value)) text.value = "";
  stick = true;
  if (!touch.matches) text.focus();
}

document.addEventListener("htmx:error", () => say(WORDS[0]));

// The stream

document.addEventListener("htmx:sse:error", (event) => {
  const { status } = event.detail;
  if (status >= 400 && status < 500) {
    event.target.remove?.();
    say(WORDS[status] ?? WORDS[404]);
  } else {
    document.getElementById("announcer").textContent = "The connection was lost. Reconnecting.";
    event.target.closest?.(".turn")?.setAttribute("data-offline", "");
  }
});

document.addEventListener("htmx:sse:after:connection", (event) => {
  event.target.closest?.(".turn")?.removeAttribute("data-offline");
});

// Scrolling: stay at the end while a person is at the end, never pull them away from what they read.

let stick = true;

function follow() {
  if (stick) scroll.scrollTop = scroll.scrollHeight;
}

if (scroll) {
  scroll.addEventListener("scroll", () => {
    stick = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 80;
  });
  new ResizeObserver(follow).observe(document.getElementById("turns"));
  follow();
}

// A delegate's card is open while it works, unless a person closed it.

const turns = document.getElementById("turns");

function openWorking() {
  for (const card of turns.querySelectorAll("details.card.delegate")) {
    const works = card.querySelector(":scope > summary .running") !== null;
    if (works && !card.dataset.opened) {
      card.dataset.opened = "yes";
      card.open = true;
    } else if (!works && card.dataset.opened === "yes") {
      card.dataset.opened = "done";
      card.open = false;
    }
  }
}

turns?.addEventListener("htmx:after:settle", (event) => {
  if (event.target.matches(".flow, .state")) openWorking();
});
if (turns) openWorking();

// Copy buttons

document.addEventListener("click", async (event) => {
  const button = event.target.closest(".copy");
  if (!button) return;
  await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 2000);
});
