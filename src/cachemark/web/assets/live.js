// A running run: asks once for everything so far, then receives only news.
const page = document.getElementById("live");
const address = page.dataset.address;
const part = (id) => document.getElementById(id);

let state; // the first answer of the server, with all news since
let isLost = false; // whether the server has stopped answering
let plots = {};
const rankings = new Map(); // title → its part of the page

// Figures as people read them.
function figure(value) {
  if (value === null || value === undefined) return "–";
  for (const [factor, unit] of [[1e9, " G"], [1e6, " M"], [1e3, " k"]]) {
    if (value >= factor) return `${(value / factor).toPrecision(3)}${unit}`;
  }
  return value.toPrecision(3);
}
function time(ns) {
  if (ns === null || ns === undefined) return "–";
  for (const [factor, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]]) {
    if (ns >= factor) return `${(ns / factor).toPrecision(3)} ${unit}`;
  }
  return `${Math.round(ns)} ns`;
}
const cpu = (us) => time(us === null || us === undefined ? us : us * 1e3);
const duration = (s) => `${Math.floor(s / 60)}:${String(Math.floor(s % 60)).padStart(2, "0")}`;

function element(name, text, ...classes) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  node.classList.add(...classes);
  return node;
}

// A colour of the style sheet as a canvas takes it: without the choice between light and dark.
function colour(name) {
  const probe = part("what");
  probe.style.color = `var(${name})`;
  const resolved = getComputedStyle(probe).color;
  probe.style.color = "";
  return resolved;
}

function lines(list, texts) {
  list.replaceChildren(...texts.map((text) => element("li", text)));
}

function showStatus(status) {
  Object.assign(state, status);
  const at = state.position;
  const done = at && at.number ? (at.number - 1 + at.part) / Math.max(1, at.total) : 0;
  part("standing").textContent = isLost ? AWAY : standing(at);
  part("progress").value = state.running || state.interrupted ? done : 1;
  showActions();
  part("what").textContent = state.running && at ? `${duration(state.seconds)} so far; now: ${at.what}` : "";
  part("machine").textContent = `${noise(state.noise)}The server of this page has used ${state.web_cpu_s.toFixed(1)} s of CPU time since its start.`;
}

function standing(at) {
  if (!state.begun) return "This run has recorded nothing yet";
  const total = at && at.total ? ` of ${at.total}` : "";
  const isAt = at && at.number;
  const played = isAt ? `${state.unit} ${at.number}${total}` : `before the first ${state.unit}`;
  if (state.running) return `${"stopping" in page.dataset ? "Stopping" : "Running"}: ${played}`;
  return state.interrupted ? `Not running: it was interrupted ${isAt ? "at " : ""}${played}` : "It has ended";
}

function noise(of) {
  if (!of) return "";
  const [other, worst, steal] = [of.foreign_cpu_percent, of.worst_foreign_cpu_percent, of.steal_percent].map((value) => value.toFixed(1));
  return `Noise: other processes used ${other} % of the CPU time of the last trial, at most ${worst} %; other machines took ${steal} %. `;
}

// The actions now: stop a run that these pages started, or resume any interrupted run.
function showActions() {
  const canStop = "startedHere" in page.dataset && !("stopping" in page.dataset);
  const shown = {
    stop: !isLost && state.running && canStop,
    resume: !isLost && state.begun && !state.running && state.interrupted,
  };
  for (const [name, isShown] of Object.entries(shown)) {
    if (part(name)) part(name).hidden = !isShown;
  }
}

function showWords() {
  part("answers").replaceChildren(
    ...state.answers.map((text) => {
      const item = element("li");
      item.append(element("span", text));
      return item;
    }),
  );
  lines(part("refused-list"), state.refused);
  part("refused-part").hidden = !state.refused.length;
  lines(
    part("problem-list"),
    state.problems.map((of) => `${of.count} × ${of.verdict}: ${of.cell}${of.reason ? `: ${of.reason}` : ""}`),
  );
  part("problem-part").hidden = !state.problems.length;
}

// The interval of a row, on the scale of its table.
function bar(row, most) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 100 10");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const rect = (x, width, y, height, name) => {
    const shape = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [key, value] of Object.entries({ x, y, width: Math.max(width, 0.4), height, class: name })) {
      shape.setAttribute(key, value);
    }
    svg.append(shape);
  };
  if (row.value) {
    const scaled = (value) => (100 * value) / most;
    rect(0, scaled(row.value), 2, 6, "value");
    if (row.low) rect(scaled(row.low), scaled(row.high) - scaled(row.low), 4.2, 1.6, "interval");
  }
  return svg;
}

// The interval of a row in words; for clients in turns, the interval of the ratio to the first.
function interval(row, of) {
  const shown = of.by_rate ? figure : time;
  if (!of.in_turns) return row.low ? `${shown(row.low)} to ${shown(row.high)}` : "–";
  // A yardstick, such as the native client, may stand above the first.
  const first = of.rows.find((one) => one.is_first);
  if (!first || !row.value) return "–";
  if (row === first) return "1";
  const [value, low, high] = [row.value, row.low, row.high].map((one) => (one / first.value).toFixed(2));
  return row.low ? `${value} (${low}–${high})` : value;
}

function rankingTable(of) {
  const shown = of.by_rate ? figure : time;
  const columns = [
    "client",
    of.by_rate ? "ops/s" : of.in_turns ? "p99" : "p99, mean",
    of.in_turns ? "of the first" : "range or 95 % interval",
    "bar",
    ...(of.by_rate ? ["p99"] : []),
    "client CPU/op", "server CPU/op", "server RSS", "errors", "valid",
  ];
  const table = element("table");
  table.append(element("caption", `Ranking: ${of.title}`, "hidden"));
  const head = table.createTHead().insertRow();
  for (const name of columns) {
    const cell = element("th");
    cell.scope = "col";
    // Only readers who cannot see the bars need their title.
    cell.append(element("span", name, ...(name === "bar" ? ["hidden"] : [])));
    head.append(cell);
  }
  const body = table.createTBody();
  const most = Math.max(...of.rows.map((row) => row.high ?? row.value ?? 0));
  for (const row of of.rows) {
    const line = body.insertRow();
    const name = element("th", row.name);
    name.scope = "row";
    const bars = element("td", undefined, "bar-cell");
    bars.append(bar(row, most));
    line.append(name, element("td", shown(row.value)), element("td", interval(row, of)), bars);
    const texts = [
      ...(of.by_rate ? [time(row.p99)] : []),
      cpu(row.client_cpu_us),
      cpu(row.server_cpu_us),
      row.server_rss ? `${figure(row.server_rss)}B` : "–",
      String(row.errors),
      row.trials ? `${row.valid} of ${row.trials}` : "–",
    ];
    for (const text of texts) line.append(element("td", text));
  }
  return table;
}

// The part of a ranking stays while its table is drawn anew: it may be focused, or scrolled sideways.
function rankingPart(title) {
  const scroll = element("div", undefined, "scroll");
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "group");
  scroll.setAttribute("aria-label", `Ranking: ${title}`);
  const card = element("div", undefined, "card");
  card.append(scroll);
  const whole = element("section");
  whole.append(element("h2", title), card);
  return { whole, scroll };
}

function showRankings() {
  for (const of of state.rankings) {
    if (!rankings.has(of.title)) rankings.set(of.title, rankingPart(of.title));
    rankings.get(of.title).scroll.replaceChildren(rankingTable(of));
  }
  const parts = state.rankings.map((of) => rankings.get(of.title).whole);
  const shown = [...part("rankings").children];
  if (parts.length !== shown.length || parts.some((one, n) => one !== shown[n])) part("rankings").replaceChildren(...parts);
}

// The index of each figure in a point.
const RATE = 3;
const CURVES = { rate: RATE, p50: 4, p99: 5 };

// More curves would be a tangle.
const MOST_CURVES = 12;
// From the seventh curve on, the colours come again: with other dashes, and other frames in the legend.
const COLOURS = 6;
const DASHES = [
  { line: [], frame: "solid" },
  { line: [6, 3], frame: "dotted" },
];
const dashOf = (n) => DASHES[Math.floor(n / COLOURS)];

// The numbers of the cells that have curves: the best so far, if there are too many for all.
function drawnCells() {
  const all = state.cells.map((_, number) => number);
  if (all.length <= MOST_CURVES) return all;
  const places = new Map();
  for (const { rows } of state.rankings) {
    rows.forEach(({ name }, place) => places.set(name, Math.min(place, places.get(name) ?? place)));
  }
  const place = (number) => places.get(state.cells[number][0]) ?? places.size;
  return all.sort((a, b) => place(a) - place(b) || a - b).slice(0, MOST_CURVES).sort((a, b) => a - b);
}

// Points → a column of blocks, and a column for each of these cells.
function columnsOf(field, cells) {
  const blocks = [...state.blocks].sort((a, b) => a - b);
  const index = new Map(blocks.map((block, at) => [block, at]));
  const data = state.cells.map(() => new Array(blocks.length).fill(null));
  for (const point of state.points.values()) data[point[0]][index.get(point[1])] = point[field];
  return [blocks.map((block) => block + 1), ...cells.map((number) => data[number])];
}

function names() {
  const differ = [0, 1, 2, 3].filter((n) => n === 0 || new Set(state.cells.map((cell) => cell[n])).size > 1);
  return state.cells.map((cell) => differ.map((n) => cell[n]).join(" · "));
}

function plot(id, field, cells) {
  const box = part(id);
  const across = state.unit === "second" ? "second" : "block";
  const key = `${cells} ${state.cells.length} ${colour("--ink")} ${box.clientWidth}`;
  if (plots[id] && plots[id].key === key) {
    plots[id].plot.setData(columnsOf(field, cells));
    return;
  }
  if (plots[id]) plots[id].plot.destroy();
  const titles = names();
  const written = field === RATE ? (value) => `${figure(value)} ops/s` : time;
  const axis = { stroke: colour("--faint"), grid: { stroke: colour("--grid"), width: 1 }, ticks: { stroke: colour("--grid"), width: 1 } };
  const chart = new uPlot(
    {
      width: box.clientWidth,
      height: 260,
      scales: { x: { time: false } },
      legend: { markers: { dash: (_, at) => dashOf(at - 1).frame } },
      axes: [
        { ...axis, label: across, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] },
        { ...axis, size: field === RATE ? 100 : 62, values: (_, ticks) => ticks.map((tick) => (tick ? written(tick) : "0")) },
      ],
      series: [
        { label: across },
        ...cells.map((number, n) => ({
          label: titles[number],
          stroke: colour(`--series${(n % COLOURS) + 1}`),
          dash: dashOf(n).line,
          width: 2,
          spanGaps: true,
          value: (_, value) => (value === null || value === undefined ? "" : written(value)),
        })),
      ],
    },
    columnsOf(field, cells),
    box,
  );
  plots[id] = { key, plot: chart };
}

function showAll() {
  showWords();
  showRankings();
  if (state.cells.length) {
    const cells = drawnCells();
    for (const [id, field] of Object.entries(CURVES)) plot(id, field, cells);
    const isPart = cells.length < state.cells.length;
    part("drawn").textContent = isPart ? `The curves show the ${cells.length} best of ${state.cells.length} so far.` : "";
  }
}

let waiting = false;
function showSoon() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    showAll();
  });
}

// After a lost connection, a point may come twice: keep one.
function addPoints(points) {
  for (const point of points) {
    state.points.set(`${point[0]} ${point[1]}`, point);
    state.blocks.add(point[1]);
  }
}

const receive = {
  cell: ({ number, names: of }) => (state.cells[number] = of),
  points: addPoints,
  ranking({ at, count, rows, ...of }) {
    let ranking = state.rankings.find((one) => one.title === of.title);
    if (!ranking) state.rankings.push((ranking = { ...of, rows: [] }));
    ranking.rows.splice(at, rows.length, ...rows);
    ranking.rows.length = count;
  },
  problem({ at, ...problem }) {
    state.problems[at] = problem;
  },
  words: (words) => Object.assign(state, words),
  status: showStatus,
};

const AWAY = "The server does not answer: trying again";
const AGAIN_MS = 2000;

function lose(text) {
  isLost = true;
  part("standing").textContent = text;
  if (state) showActions();
}

function again() {
  lose(AWAY);
  setTimeout(open, AGAIN_MS);
}

// Ask for everything so far, show it, and receive what is new.
async function open() {
  let answer, all;
  try {
    answer = await fetch(`${address}/state`);
    if (answer.ok && !answer.redirected) all = await answer.json();
  } catch {
    again();
    return;
  }
  if (all) {
    isLost = false;
    state = { ...all, points: new Map(), blocks: new Set() };
    addPoints(all.points);
    showStatus({});
    showAll();
    if (state.running) follow();
    else if (!state.begun) setTimeout(open, AGAIN_MS);
  } else if (answer.status >= 500) again();
  else lose(`The server refuses to go on with this page${answer.ok ? "" : ` (status ${answer.status})`}: reload it`);
}

function follow() {
  const source = new EventSource(`${address}/events?after=${state.id}`);
  const restart = () => {
    source.close();
    open();
  };
  // The browser asks again, with the number of the last event that it received; or it gives up.
  source.onerror = () => {
    if (source.readyState === EventSource.CLOSED) again();
    else lose(AWAY);
  };
  source.onopen = () => {
    isLost = false;
    showStatus({});
  };
  for (const [name, take] of Object.entries(receive)) {
    source.addEventListener(name, (event) => {
      take(JSON.parse(event.data));
      if (name !== "status") showSoon();
      else if (!state.running) source.close();
      // The server merges blocks where there are too many for a screen.
      if (name === "points" && state.blocks.size > state.max_points) restart();
    });
  }
}

new ResizeObserver(() => state && showSoon()).observe(part("rate"));
new MutationObserver(() => state && showSoon()).observe(document.documentElement, { attributes: true });
open();
