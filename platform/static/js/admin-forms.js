// The admin's own forms: the settings of the chosen tool kind, tables of rows, copying a key.

function showChosenKind() {
  const chosen = document.querySelector("select[name=kind]");
  if (!chosen) return;
  for (const part of document.querySelectorAll("fieldset.kind-settings")) {
    part.hidden = !part.classList.contains(`kind-${chosen.value}`);
  }
}

function showChosenPeople() {
  const audience = document.querySelector("select[name=audience]");
  if (!audience) return;
  for (const name of ["groups", "users"]) {
    const row = document.querySelector(`[name=${name}]`)?.closest(".field-row");
    if (row) row.hidden = audience.value !== "chosen";
  }
}

// Unfold's tabs inside a form and its row menus are clickable only: let the keyboard reach them.
function makeReachable() {
  for (const part of document.querySelectorAll("form nav > a:not([href]), td.field-actions_holder span[x-ref]")) {
    part.tabIndex = 0;
    part.setAttribute("role", "button");
    if (part.hasAttribute("x-ref")) part.setAttribute("aria-label", "What to do with this row");
    part.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      part.click();
    });
  }
}

function addRow(rows) {
  const body = rows.querySelector("tbody");
  const numbers = [...body.querySelectorAll("[name]")].map((field) => Number(/-(\d+)-[^-]*$/.exec(field.name)?.[1] ?? 0));
  const next = Math.max(-1, ...numbers) + 1;
  const row = rows.querySelector("template").content.firstElementChild.cloneNode(true);
  for (const field of row.querySelectorAll("[name]")) {
    field.name = field.name.replace("__n__", next);
    field.setAttribute("aria-label", field.getAttribute("aria-label").replace("row new", `row ${body.children.length + 1}`));
  }
  body.append(row);
  row.querySelector("input, select, textarea").focus();
}

function removeRow(button) {
  const rows = button.closest("[data-rows]");
  button.closest("tr").remove();
  rows.querySelector("[data-add-row]").focus();
}

document.addEventListener("DOMContentLoaded", () => {
  showChosenKind();
  showChosenPeople();
  makeReachable();
  document.querySelector("select[name=kind]")?.addEventListener("change", showChosenKind);
  document.querySelector("select[name=audience]")?.addEventListener("change", showChosenPeople);
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.matches("[data-add-row]")) addRow(button.closest("[data-rows]"));
  if (button.matches("[data-remove-row]")) removeRow(button);
  if (button.matches("[data-copy]")) {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
  }
});
