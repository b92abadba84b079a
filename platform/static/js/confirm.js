// The question of hx-confirm in a dialog of the page instead of the browser's own.

document.addEventListener("htmx:confirm", (event) => {
  const { ctx, issueRequest, dropRequest } = event.detail;
  const dialog = document.getElementById("confirm");
  event.preventDefault();
  dialog.querySelector("#confirm-question").textContent = ctx.confirm;
  dialog.returnValue = "no";
  dialog.addEventListener("close", () => (dialog.returnValue === "yes" ? issueRequest() : dropRequest()), { once: true });
  dialog.showModal();
});
