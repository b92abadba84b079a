// Another tab may have gone on with this conversation: its turns are fetched when this one is looked at again.

const turns = document.getElementById("turns");
const lastTurn = () => turns.querySelector(":scope > .turn:last-of-type");

async function catchUp() {
  const last = lastTurn();
  if (document.hidden || !last) return;
  const address = `${location.pathname}?after=${last.id.slice(2)}`;
  const answer = await fetch(address, { headers: { "HX-Request": "true" } }).catch(() => null);
  if (answer?.status !== 200) return;
  const text = await answer.text();
  if (lastTurn() === last) await htmx.swap({ text, target: turns, swap: "beforeend", sourceElement: turns });
}

document.addEventListener("visibilitychange", catchUp);
window.addEventListener("focus", catchUp);
