// Stay at the end of the conversation while a person is there; never pull them away from what they read.

const scroll = document.getElementById("scroll");
const turns = document.getElementById("turns");
const NEAR = 80;
let atEnd = turns.querySelector(":scope > .turn") !== null; // a new conversation is read from its beginning

function follow() {
  if (atEnd) scroll.scrollTop = scroll.scrollHeight;
}

scroll.addEventListener("scroll", () => {
  atEnd = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < NEAR;
});
turns.addEventListener("htmx:before:settle", (event) => {
  if (event.target === turns) atEnd = true; // a turn was added: the person's own
});
const growth = new ResizeObserver(follow);
growth.observe(turns);
growth.observe(scroll);
