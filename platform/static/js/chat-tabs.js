// Another tab may have gone on with this conversation: its turns are fetched when this one is looked at again, and when
// the server has taken what this one does not show.

const turns = document.getElementById("turns");
const composer = document.getElementById("composer");
const lastTurn = () => turns?.querySelector(":scope > .turn:last-of-type");
const isSending = () => composer?.matches(".htmx-request"); // its answer brings a turn of its own

async function catchUp() {
  const last = lastTurn();
  if (document.hidden || !last) return;
  const answer = await fetch(`?after=${last.id.slice(2)}`, { headers: { "HX-Request": "true" } }).catch(() => null);
  if (answer?.status !== 200) return;
  const text = await answer.text();
  if (lastTurn() !== last || isSending()) return;
  await htmx.swap({ text, target: turns, swap: "beforeend", sourceElement: turns });
}

document.addEventListener("visibilitychange", catchUp);
window.addEventListener("focus", catchUp);
composer?.addEventListener("htmx:finally:request", (event) => {
  const { response } = event.detail.ctx;
  if (event.target === composer && (!response || response.status === 409)) catchUp();
});
