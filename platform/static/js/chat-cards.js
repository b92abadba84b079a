// A delegate's card is open while it works, unless a person closed it. Code is copied by its button.

const turns = document.getElementById("turns");

function openWorking() {
  for (const card of turns.querySelectorAll("details.card.delegate")) {
    const works = card.querySelector(":scope > summary .running") !== null;
    if (works && !card.dataset.opened) {
      card.dataset.opened = "yes";
      card.open = true;
    } else if (!works && card.dataset.opened === "yes") {
      card.dataset.opened = "no";
      card.open = false;
    }
  }
}

turns.addEventListener("htmx:after:settle", (event) => {
  if (event.target.matches(".flow, .state")) openWorking();
});
openWorking();

turns.addEventListener("click", async (event) => {
  const button = event.target.closest(".copy");
  if (!button) return;
  await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 2000);
});
