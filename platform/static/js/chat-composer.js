// The message field: Enter sends, Escape stops; what was sent is cleared once the server has taken it.

const composer = document.getElementById("composer");
const field = document.getElementById("composer-text");
const touch = matchMedia("(pointer: coarse)");

field?.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || touch.matches) return;
  event.preventDefault();
  if (composer.querySelector(".send")) composer.requestSubmit();
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.isComposing || document.querySelector("dialog[open], :popover-open")) return;
  if (event.target.closest(".thread-menu")) return; // somebody thought better of a new title
  document.querySelector(".composer .stop")?.click();
});

composer?.addEventListener("htmx:before:swap", (event) => {
  const { ctx } = event.detail;
  if (event.target !== composer || event.defaultPrevented || !ctx.response || ctx.response.status >= 400) return;
  const sent = ctx.request.body;
  const same = sent.get("text").replace(/\r\n/g, "\n") === field.value;
  if (same && !sent.get("starter") && !sent.get("retry")) field.value = "";
  if (!touch.matches) field.focus();
});
