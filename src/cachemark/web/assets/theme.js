// The choice of theme holds for all pages. This runs before anything is drawn.
"use strict";

const THEME_KEY = "cachemark-theme";
const root = document.documentElement;
const chosen = localStorage.getItem(THEME_KEY);
if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
new MutationObserver(() => {
  if (root.dataset.theme) localStorage.setItem(THEME_KEY, root.dataset.theme);
  else localStorage.removeItem(THEME_KEY);
}).observe(root, { attributes: true, attributeFilter: ["data-theme"] });
