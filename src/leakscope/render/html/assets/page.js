// What the page does when it is opened: draws, and listens to its buttons.
const data = JSON.parse(byId("data").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const [run, other] = data.runs;
const memory = run.panels.length ? new Memory(run) : null;
const comparison = other && run.panels.length && other.panels.length ? new Comparison([run, other]) : null;
const icicle = run.tree.length ? new Icicle(run.tree) : null;

function redraw() {
  colours.clear();
  if (memory) memory.draw(true);
  if (comparison && comparison.metric) comparison.draw(true);
  if (icicle) icicle.draw();
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : dark.matches;
}

function showTheme() {
  byId("theme").setAttribute("aria-pressed", String(isDark()));
  redraw();
}

byId("theme").hidden = false;
byId("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  showTheme();
});
dark.addEventListener("change", showTheme);
byId("theme").setAttribute("aria-pressed", String(isDark()));

const DO = {
  in: (chart) => chart.zoom(0.5),
  out: (chart) => chart.zoom(2),
  reset: (chart) => chart.reset(),
};
for (const button of document.querySelectorAll("[data-do]")) {
  button.addEventListener("click", () => {
    const what = button.dataset.do;
    if (what === "changes") {
      memory.onlyChanges = !memory.onlyChanges;
      memory.draw(true);
    } else DO[what](button.closest("#comparison") ? comparison.chart : memory.lines);
  });
}
if (byId("process")) {
  byId("process").addEventListener("change", (event) => memory.show(Number(event.target.value)));
}

if (byId("unfold")) {
  byId("unfold").hidden = false;
  byId("unfold").addEventListener("click", () => {
    const all = [...document.querySelectorAll("details.finding")];
    const isOpen = !all.every((one) => one.open);
    for (const one of all) one.open = isOpen;
    byId("unfold").setAttribute("aria-pressed", String(isOpen));
  });
}

const fit = wait(() => {
  for (const chart of charts) chart.fit();
  if (icicle) icicle.draw();
}, 100);
addEventListener("resize", fit);
if (icicle) {
  byId("icicle").addEventListener("focus", () => icicle.draw());
  byId("icicle").addEventListener("blur", () => icicle.draw());
}

// On paper everything is open, and ink is dark on white.
let before = null;
addEventListener("beforeprint", () => {
  before = {
    theme: document.documentElement.dataset.theme,
    closed: [...document.querySelectorAll("details:not([open])")],
  };
  document.documentElement.dataset.theme = "light";
  for (const one of before.closed) one.open = true;
  redraw();
});
addEventListener("afterprint", () => {
  if (before.theme) document.documentElement.dataset.theme = before.theme;
  else delete document.documentElement.dataset.theme;
  for (const one of before.closed) one.open = false;
  redraw();
});
