// The theme's search dialog has no names for programs that read pages aloud. It is made after the page.
function nameParts(dialog) {
  const input = dialog.querySelector("input[role=combobox]");
  const results = dialog.querySelector("ol");
  if (!input || !results) return false;
  results.id = "search-results";
  input.setAttribute("aria-label", "Search");
  input.setAttribute("aria-controls", results.id);
  input.setAttribute("aria-expanded", "true");
  const [search, filters] = dialog.querySelectorAll("button");
  search?.setAttribute("aria-label", "Search");
  filters?.setAttribute("aria-label", "Filters");
  // It scrolls, so it can be reached by keyboard.
  dialog.querySelector("h3")?.closest("div")?.parentElement?.setAttribute("tabindex", "0");
  return true;
}

// The dialog has an element of its own in the body; what is in it comes later still.
function watch(observer) {
  for (const { shadowRoot } of document.body.children) {
    if (!shadowRoot) continue;
    if (nameParts(shadowRoot)) return observer.disconnect();
    observer.observe(shadowRoot, { childList: true, subtree: true });
  }
}

const observer = new MutationObserver(() => watch(observer));
observer.observe(document.body, { childList: true });
watch(observer);
