// Sends the chosen file as the body of a request, and shows the result.
"use strict";

const form = document.getElementById("import");
const said = document.getElementById("said");
function tell(text, wrong) {
  said.hidden = false;
  said.classList.toggle("wrong", wrong);
  said.textContent = text;
}
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button");
  button.disabled = true;
  tell("Checking the file …", false);
  try {
    const answer = await fetch("/import", {
      method: "POST",
      body: form.elements.file.files[0],
      headers: { "x-cachemark-csrf": form.dataset.csrf, "content-type": "application/octet-stream" },
    });
    const isJson = (answer.headers.get("content-type") || "").startsWith("application/json");
    const result = isJson ? await answer.json() : { problem: `Not imported: status ${answer.status}` };
    if (result.problem) tell(`Not imported: ${result.problem}`, true);
    else location.assign(`/runs/${encodeURIComponent(result.run)}`);
  } catch (error) {
    tell(`Not imported: ${error.message}`, true);
  }
  button.disabled = false;
});
