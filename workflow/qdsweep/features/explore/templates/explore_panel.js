// Panel: the elite of a cell, its film, its scores with fresh seeds, and the history of the cell. Then the page itself.
const hint = () => (isServed ? "Move the pointer over a cell, and click it to play its elite."
  : `Move the pointer over a cell.${index.films?.length ? " This page plays the elites in circles: click one." : ""}`)
  + " Arrows move, Enter chooses, Space plays.";
const panel = { lines: null, fresh: null, film: null, stop: null, histories: new Map() };
const note = (text) => make("p", { className: "note", textContent: text });
const sentence = (text) => note(text.charAt(0).toUpperCase() + text.slice(1) + (text.endsWith(".") ? "" : "."));

async function choose(archive, cell, isAsked = true) {
  const isSame = state.run === archive.place && state.cell === cell;
  Object.assign(state, { run: archive.place, cell });
  if (isAsked) history.replaceState(null, "", `#${archive.id}/${cell}`);
  if (isSame && panel.film?.frames.length) { panel.film.toggle(); return; }
  panel.stop?.abort();
  panel.film?.close();
  const stop = new AbortController(), { space } = archive, measures = archive.measuresOf(cell), last = archive.cell.lastIndexOf(cell);
  Object.assign(panel, { stop, fresh: null, lines: null, film: null, histories: historiesOf(archive, cell) });
  const facts = make("dl"), screen = make("div", { className: "screen" }), seeds = make("div"), values = make("div");
  const fact = (name, text) => facts.append(make("dt", { textContent: name }), make("dd", { textContent: text }));
  side.replaceChildren(make("h2", { textContent: archive.label }), make("p", { className: "cell", textContent: describeCell(space, cell) }),
    then, screen, facts, seeds, ...(bottom.hidden ? [] : [make("h3", { textContent: "This cell over time" }), story]), values);
  redraw("cell");
  if (last < 0 || archive.isEmptied(last)) { screen.append(note("This cell is empty.")); return; }
  const addMeasures = (values) => space.measures.forEach((name, m) => { fact(name, number(values[m], 4)); });
  fact("objective", number(archive.objective[last], 6));
  if (measures) addMeasures(measures);
  if (!bottom.hidden) fact("found", `${archive.exact ? "at" : "by"} evaluation ${count(archive.when(last))}`);
  const line = python(archive, cell), address = `${archive.source}/${cell}`;
  if (archive.rowOf.has(cell)) side.append(make("h3", { textContent: "From Python" }), make("p", { className: "python" }, make("code", { textContent: line }), copyButton(line)));
  if (!archive.live && isServed) side.append(make("button", { className: "save", textContent: "Save all parameters", onclick: () => save(address, `${archive.id}-${cell}.json`, screen) }));
  const take = (record) => {
    if (record.parameters) panel.parameters = record;
    if (record.parameters && !measures) addMeasures(record.measures);
    if (record.parameters && Math.fround(record.objective) !== archive.objective[last]) screen.before(note(`The elite of ${archive.live ? "the last reload file" : "an earlier archive"} is shown, with the objective ${number(record.objective, 6)}.`));
    if (record.error) screen.append(sentence(record.error));
    if (record.unseen !== undefined) screen.append(sentence(record.unseen || "This domain has no pictures. The parameters are below."));
    if (record.lines) { panel.lines = record.lines; drawLines(screen, record.lines); redraw(); }
    if (record.hits) fact("lands here", `in ${record.hits[0]} of ${record.hits[1]} [${record.hits[2].toFixed(2)}, ${record.hits[3].toFixed(2)}]`);
    if (record.steps) fact("episode", `${count(record.steps)} steps`);
    if (record.same !== undefined) fact("played again", record.same === null ? "with another seed" : record.same ? "the same score" : "another score");
    if (record.deterministic) seeds.replaceChildren(note("The domain does not depend on seeds."));
    if (record.fresh) { panel.fresh = [...(panel.fresh ?? []), record.fresh]; drawSeeds(seeds, archive, last); redraw(); }
  };
  try {
    panel.film = new Film(screen, take, (numbers) => drawParameters(values, numbers));
    await panel.film.read(await get(`film/${address}`, stop.signal));
  } catch (error) {
    if (!stop.signal.aborted) screen.append(note(error.message));
  }
}
const historiesOf = ({ space }, cell) => new Map(archives.map((other) => [other.place, other.space === space ? other.history(cell) : []]));
function copyButton(text) {
  const button = make("button", { textContent: "Copy" });
  button.onclick = () => navigator.clipboard.writeText(text).then(() => { button.textContent = "Copied"; });
  return button;
}
async function save(address, name, screen) {
  try {
    const url = URL.createObjectURL(await (await get(`elite/${address}`)).blob());
    make("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  } catch (error) { screen.append(note(error.message)); }
}
function chooseBest() {
  const [film] = index.films ?? [];
  if (film) {  // of a report
    const [place, , cell] = film.split("/").slice(1).map(Number), filmed = archives.find((archive) => archive.place === place);
    if (filmed && shown().includes(filmed)) { choose(filmed, cell, false); return; }
  }
  const best = ({ cell, objective, space }) => {  // an archive that is not elitist has lost its best objective so far
    const last = new Int32Array(space.cells).fill(-1);
    cell.forEach((c, insertion) => { last[c] = insertion; });
    return last.reduce((a, b) => (objective[b] > (objective[a] ?? -Infinity) ? b : a), -1);
  };
  const elites = shown().map((archive) => [archive, best(archive)]).filter(([, insertion]) => insertion >= 0);
  const value = ([archive, insertion]) => archive.objective[insertion];
  if (elites.length) {
    const [archive, insertion] = elites.reduce((a, b) => (value(b) > value(a) ? b : a));
    choose(archive, archive.cell[insertion], false);
  }
}

// A film: a stream of records. Each picture replaces the part of the one before it that has changed.
class Film {
  constructor(screen, take, takeParameters) {
    Object.assign(this, { screen, take, takeParameters, frames: [], drawn: -1, clock: 0, fps: 30, playing: false, isWhole: false, isClosed: false });
    this.canvas = make("canvas", { onclick: () => this.toggle() });
    this.button = make("button", { textContent: "\u25b6", ariaLabel: "play or pause", onclick: () => this.toggle() });
    this.bar = make("input", { type: "range", min: 0, max: 0, step: 1, value: 0, ariaLabel: "step of the episode" });
    this.bar.oninput = () => { this.pause(); this.clock = this.bar.value / this.fps; this.show(); };
    this.text = make("span");
  }
  async read(answer) {
    const reader = answer.body.getReader();
    let rest = new Uint8Array(0);
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      rest = joined(rest, value);
      while (rest.length > 4) {
        const end = 4 + new DataView(rest.buffer, rest.byteOffset).getUint32(0, true);
        if (rest.length < end) break;
        await this.takeRecord(String.fromCharCode(rest[4]), rest.slice(5, end));
        if (this.isClosed) return;
        rest = rest.subarray(end);
      }
    }
    this.isWhole = true;
  }
  async takeRecord(kind, content) {
    if (kind === "S") this.takeParameters(new Float32Array(content.buffer));
    if (kind === "J") {
      const record = JSON.parse(new TextDecoder().decode(content));
      if (record.width) {
        Object.assign(this.canvas, { width: record.width, height: record.height });
        this.fps = record.fps;
        this.screen.replaceChildren(this.canvas, make("div", { className: "controls" }, this.button, this.bar, this.text));
      }
      this.take(record);
    }
    if (kind === "F") {
      const head = new DataView(content.buffer), bitmap = await createImageBitmap(new Blob([content.subarray(8)], { type: "image/webp" }));
      if (this.isClosed) return bitmap.close();
      this.frames.push({ x: head.getUint16(0, true), y: head.getUint16(2, true), step: head.getUint32(4, true), bitmap });
      this.bar.max = this.frames.at(-1).step;
      if (this.frames.length > 1) return;
      this.show();
      if (!matchMedia("(prefers-reduced-motion: reduce)").matches) this.play();
    }
  }
  show() {
    const step = this.clock * this.fps + 1e-6, c = this.canvas.getContext("2d");
    let last = this.frames.length - 1;
    while (last > 0 && this.frames[last].step > step) last--;
    if (last < this.drawn) this.drawn = -1;
    while (this.drawn < last) { const { x, y, bitmap } = this.frames[++this.drawn]; c.drawImage(bitmap, x, y); }
    this.bar.value = step;
    this.text.textContent = `${(this.frames[last].step / this.fps).toFixed(1)} s`;
  }
  play() {
    this.playing = true;
    this.button.textContent = "\u275a\u275a";
    let before = performance.now();
    const tick = (time) => {
      if (!this.playing) return;
      const last = this.frames.at(-1).step / this.fps;
      this.clock = clamp(this.clock + (time - before) / 1000, 0, last);
      before = time;
      this.show();
      if (this.clock >= last && this.isWhole) this.pause(); else requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }
  pause() { this.playing = false; this.button.textContent = "\u25b6"; }
  close() {
    this.isClosed = true;
    this.pause();
    for (const { bitmap } of this.frames) bitmap.close();
  }
  toggle() {
    if (this.playing) return this.pause();
    if (this.clock >= this.frames.at(-1).step / this.fps) this.clock = 0;
    this.play();
  }
}
function drawLines(screen, lines) {  // of a domain's `draw`
  const canvas = make("canvas"), points = lines.flat();
  screen.replaceChildren(canvas);
  const [c, width, high] = fit(canvas, canvas.clientWidth * 0.75);
  const spans = [0, 1].map((axis) => {
    const values = points.map((point) => point[axis]), [low, top] = [Math.min(...values), Math.max(...values)];
    return { middle: (low + top) / 2, size: top - low || 1 };
  });
  const unit = 0.85 * Math.min(width / spans[0].size, high / spans[1].size);
  c.lineJoin = "round"; c.fillStyle = style("--page"); c.strokeStyle = style("--ink");
  for (const points of lines) {
    const path = points.map(([x, y]) => [width / 2 + (x - spans[0].middle) * unit, high / 2 - (y - spans[1].middle) * unit]);
    c.lineWidth = 3;
    line(c, ...path);
    c.lineWidth = 1.6;
    for (const [x, y] of path) { circle(c, x, y, 4); c.fill(); c.stroke(); }
  }
}
// The objectives with fresh seeds, next to the one in the archive.
function drawSeeds(place, archive, insertion) {
  const { space } = archive, own = archive.objective[insertion], values = panel.fresh.map(([objective]) => objective);
  const mean = values.reduce((a, b) => a + b) / values.length, canvas = make("canvas");
  place.replaceChildren(make("h3", { textContent: `Objective with ${values.length} fresh ${values.length > 1 ? "seeds" : "seed"}` }), canvas,
    note(values.every((value) => Math.fround(value) === own) ? "The same with every seed." : `Mean ${number(mean)}; in the archive ${number(own)}.`));
  const [c, width] = fit(canvas, 34), low = Math.min(space.low, own, ...values), high = Math.max(space.high, own, ...values);
  const x = (value) => 8 + ((value - low) / (high - low)) * (width - 16);
  c.strokeStyle = style("--line"); c.lineWidth = 1;
  line(c, [8, 22], [width - 8, 22]);
  c.strokeStyle = style("--ink"); c.lineWidth = 0.8;
  for (const value of values) { circle(c, x(value), 22, 4.5); c.fillStyle = css(colorOf(space, value)); c.fill(); c.stroke(); }
  c.fillStyle = style("--ink");
  line(c, [x(own), 17], [x(own) - 5, 6], [x(own) + 5, 6], [x(own), 17]);
  c.fill();
}
// Who held the cell: the objective over evaluations, in each run. Only final elites have parameters.
function drawHistory() {
  const archive = chosen(), value = archive.value(state.cell);
  then.textContent = archive.live || archive.isFinal(state.cell) || !archive.rowOf.has(state.cell) ? ""
    : `At ${count(state.time)} evaluations, ${value === null ? "the cell was empty" : `the cell had the objective ${number(value)}`}. The final elite is shown.`;
  if (!story.isConnected) return;
  const [c, width] = fit(story, 92), runs = shown().map((other) => [other, panel.histories.get(other.place) ?? []]).filter(([, steps]) => steps.length);
  c.fillStyle = style("--soft"); c.textBaseline = "middle"; c.textAlign = "left";
  if (!runs.length) { c.fillText("No run has an elite here.", 8, 20); return; }
  const values = runs.flatMap(([, steps]) => steps.map((step) => step[1]).filter((v) => !Number.isNaN(v))), most = longest();
  const low = values.reduce((a, b) => Math.min(a, b)), high = values.reduce((a, b) => Math.max(a, b));
  const x = (evaluations) => 44 + (evaluations / most) * (width - 54), y = (v) => 8 + (high > low ? 1 - (v - low) / (high - low) : 0.5) * 68;
  c.textAlign = "right";
  for (const v of new Set([low, high])) c.fillText(number(v, 3), 38, y(v));
  for (const [other, steps] of runs) {
    const isChosen = other.place === state.run, ends = [...steps.slice(1).map(([when]) => when), most];
    Object.assign(c, { strokeStyle: lineColor(other), fillStyle: lineColor(other), globalAlpha: isChosen ? 1 : 0.45, lineWidth: isChosen ? 2 : 1.3 });
    c.setLineDash(DASHES[other.dash]);
    let points = [];
    for (const [i, [when, v]] of [...steps, [most, NaN]].entries()) {  // a line for each time without a gap
      if (!Number.isNaN(v)) points.push([x(when), y(v)], [x(ends[i]), y(v)]);
      else { if (points.length) line(c, ...points); points = []; }
    }
    c.setLineDash([]);
    if (steps.length < 60) for (const [when, v] of steps) if (!Number.isNaN(v)) { circle(c, x(when), y(v), 2.4); c.fill(); }
  }
  c.globalAlpha = 1; c.strokeStyle = style("--ink"); c.lineWidth = 1;
  line(c, [x(state.time), 2], [x(state.time), 84]);
}
function drawParameters(place, numbers) {
  const { parameters, every } = panel.parameters, canvas = make("canvas");
  const text = every > 1 ? `${count(parameters)} parameters (1 of ${every} is drawn)` : `${count(parameters)} parameters`;
  place.replaceChildren(make("h3", { textContent: text }), canvas);
  const [c, width] = fit(canvas, 64), most = numbers.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-12), step = width / numbers.length;
  numbers.forEach((v, i) => {
    c.fillStyle = v < 0 ? "#d55e00" : "#0072b2";
    c.fillRect(i * step, 32 - (Math.max(v, 0) / most) * 30, Math.max(step - (step > 3), 0.6), (Math.abs(v) / most) * 30);
  });
  c.fillStyle = style("--line"); c.fillRect(0, 32, width, 1);
}

// The page.
const head = make("div", { className: "head" }), grid = make("div", { className: "maps" }), side = make("aside"), bottom = make("div", { className: "time" });
const notes = make("div"), tests = make("div", { className: "tests" }), where = make("p", { className: "where", ariaLive: "polite" }), scale = make("canvas", { className: "scale" }), chips = make("div", { className: "chips" });
const then = make("p", { className: "then" }), story = make("canvas"), chart = make("canvas", { className: "chart" });
const slider = make("input", { type: "range", min: 0, step: 1, ariaLabel: "evaluations" }), clock = make("b");
const player = make("button", { className: "play", textContent: "\u25b6", ariaLabel: "play the time" }), metric = make("select", { ariaLabel: "curve" });

function playTime(isOn = !state.playing) {
  state.playing = isOn;
  player.textContent = isOn ? "\u275a\u275a" : "\u25b6";
  if (!isOn) return;
  const most = longest();
  if (state.time >= most) state.time = 0;
  let share = Math.sqrt(state.time / most), before = performance.now();  // slower at the start, where most happens
  const tick = (time) => {
    if (!state.playing) return;
    share = clamp(share + (time - before) / 9000, 0, 1); before = time;
    state.time = Math.round(most * share * share);
    redraw("time");
    if (share < 1) requestAnimationFrame(tick); else playTime(false);
  };
  requestAnimationFrame(tick);
}
function showTime(evaluations) { playTime(false); state.time = evaluations; redraw("time"); }
function arrange() {  // the maps of a space
  maps = shown().map((archive) => new ArchiveMap(archive));
  grid.replaceChildren(...maps.map((map) => map.element));
  arrangeTime();
  spread();
}
function arrangeTime(time = state.time) {
  bottom.hidden = shown().every((archive) => archive.evaluations.length < 2);  // without a history
  slider.max = longest();
  state.time = Math.min(time, longest());
  redraw("time", "cell");
}
function spread() {  // as large as the window allows
  const { layout } = spaces[state.space], gap = 16, least = 170;
  const room = Math.max(360, innerHeight - head.offsetHeight - bottom.offsetHeight - (isServed ? root.offsetTop : 80) - 20);
  const aspect = layout ? clamp(layout.height / layout.width, 0.2, 1.15) : 0.8;
  let [best, columns] = [0, 1];
  for (let n = 1; n <= maps.length; n++) {
    const across = (grid.clientWidth - gap * (n - 1)) / n, down = 50 + (room / Math.ceil(maps.length / n) - gap - 64) / aspect;
    const size = Math.max(Math.min(across, down), Math.min(least, across));
    if (across >= Math.min(least, grid.clientWidth) && size >= best) [best, columns] = [size, n];
  }
  if (innerWidth <= 760) [best, columns] = maps.length > 1 ? [(grid.clientWidth - gap) / 2, 2] : [grid.clientWidth, 1];
  grid.style.gridTemplateColumns = `repeat(${columns}, minmax(0, ${best}px))`;
}
function arrangeChips() {
  const all = archives.filter((archive) => archive.space === spaces[state.space]);
  chips.replaceChildren(...(all.length < 2 ? [] : all).map((archive) => {
    const box = make("input", { type: "checkbox", checked: !state.hidden.has(archive.place) });
    box.onchange = () => { state.hidden[box.checked ? "delete" : "add"](archive.place); arrange(); };
    const chip = make("label", {}, box, archive.label);
    chip.style.setProperty("--run", archive.color);
    return chip;
  }));
}
async function compare() {  // the tests between groups of several sweeps
  if (!index.sweeps.length) return;
  const answer = await (await get("tests")).json();
  const row = (kind, cells) => make("tr", {}, ...cells.map((cell, i) => make(kind, { textContent: cell, className: i < answer.text ? "text" : "" })));
  tests.replaceChildren(make("h2", { textContent: answer.title }), make("table", { hidden: !answer.rows.length }, row("th", answer.columns), ...answer.rows.map((cells) => row("td", cells))),
    ...answer.notes.filter((text) => !index.notes.includes(text)).map(note));
}
function goTo(place) {  // a space
  Object.assign(state, { space: place, hover: -1, cell: -1, run: -1 });
  arrangeChips();
  state.time = longest();
  arrange();
}
async function readArchive(about) {
  if (about.problem) return `${about.label}: ${about.problem}`;
  const source = `${about.place}/${about.digest}`, before = archives.find((archive) => archive.place === about.place);
  if (before?.source === source && !about.live) return before;
  const after = before?.live ? before.evaluations.at(-1) ?? 0 : 0;  // the insertions that the page has do not change
  try {
    const unpacked = (await get(`run/${source}/${after}`)).body.pipeThrough(new DecompressionStream("deflate"));
    const buffer = await new Response(unpacked).arrayBuffer();
    if (!before?.live) return new Archive({ ...about, source }, spaces[about.space], buffer);
    before.add({ ...about, source }, buffer);
    return before;
  } catch (error) { return `${about.label}: ${error.message}`; }
}
async function read() {  // the index, and what the page does not have of its runs
  index = await (await get("index")).json();
  const known = spaces ?? [];
  spaces = index.spaces.map((space) => Object.assign(known.find(({ title, text }) => title === space.title && text === space.points) ?? space, { low: space.low, high: space.high }));
  for (const space of spaces) if (!known.includes(space)) space.layout = layoutOf(space);
  const answers = await Promise.all(index.runs.map(readArchive)), isArchive = (answer) => answer instanceof Archive;
  archives = answers.filter(isArchive);
  const thinned = archives.filter((archive) => !archive.exact).map(({ label, evaluations }) =>
    `${label}: the history is long, so it is shown at ${evaluations.length} times.`);
  const approximate = archives.filter((archive) => archive.isApproximate).map(({ label }) =>
    `${label}: an earlier version of qdsweep recorded the history, so earlier archives are approximate.`);
  notes.replaceChildren(...[...index.notes, ...answers.filter((answer) => !isArchive(answer)), ...thinned, ...approximate].map(note));
  return known.length === spaces.length && spaces.every((space, i) => space === known[i]);
}
// Runs that are not finished are followed. The page asks again after ten times the time of the answer.
async function followRuns(wait = 2000) {
  if (!index.is_open) return;
  await new Promise((resolve) => { setTimeout(resolve, wait); });
  const start = performance.now(), end = longest(), before = archives;
  if (!document.hidden) {
    try {
      if (!(await read())) { location.reload(); return; }
      if (archives.length !== before.length || archives.some((archive, i) => archive !== before[i])) { arrangeChips(); arrange(); }
      if (chosen()) panel.histories = historiesOf(chosen(), state.cell);
      if (chosen()?.live && !panel.film && chosen().value(state.cell) !== null) choose(chosen(), state.cell, false);
      arrangeTime(state.time >= end ? longest() : state.time);
    } catch (error) { notes.replaceChildren(note(error.message)); }
  }
  followRuns(Math.max(2000, 10 * (performance.now() - start)));
}
function listen() {
  metric.onchange = () => { state.metric = metric.value; redraw(); };
  player.onclick = () => playTime();
  slider.oninput = () => showTime(Number(slider.value));
  const drag = (event) => { if (event.buttons) showTime(Math.round(clamp((event.offsetX - CHART.left) / (chart.clientWidth - CHART.left - CHART.right), 0, 1) * longest())); };
  chart.addEventListener("pointerdown", (event) => { chart.setPointerCapture(event.pointerId); drag(event); });
  chart.addEventListener("pointermove", drag);
  addEventListener("keydown", (event) => {
    if (!isServed && !root.contains(event.target)) return;
    if (event.target.matches("input, select, button, a") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === " ") { event.preventDefault(); if (panel.film?.frames.length) panel.film.toggle(); else playTime(); }
    const step = { ",": -1, ".": 1 }[event.key], stepped = shown().find((archive) => archive.place === state.run) ?? shown()[0];
    if (stepped && step) showTime(stepped.evaluations[clamp(stepped.frame + step, 0, stepped.evaluations.length) - 1] ?? 0);
  });
  for (const element of [root, grid]) new ResizeObserver(() => { spread(); redraw("cell"); }).observe(element);
  addEventListener("resize", () => { spread(); redraw("cell"); });
  isDark.addEventListener("change", () => redraw("time", "cell"));
}
function follow() {  // the address
  const { token, id, cell } = readAddress(), linked = archives.find((archive) => archive.id === id);
  if (token) { location.reload(); return true; }
  if (!linked || !(cell < linked.space.cells)) return false;
  if (linked.space !== spaces[state.space]) goTo(spaces.indexOf(linked.space));
  choose(linked, cell);
  if (!isServed) root.scrollIntoView();
  return true;
}
async function start() {
  readAddress();
  addEventListener("hashchange", follow);
  await read();
  if (isServed) { document.title = `${index.title} - qdsweep explore`; document.querySelector("h1").prepend(`${index.title} `); }
  const bytes = bytesOf(index.colors);
  colors = Uint32Array.from({ length: 256 }, (_, i) => 0xff000000 | (bytes[3 * i + 2] << 16) | (bytes[3 * i + 1] << 8) | bytes[3 * i]);
  if (!archives.length) {
    root.append(notes);
    if (index.is_open) setTimeout(() => location.reload(), 2000);
    return;
  }
  const menu = make("select", { className: "spaces", ariaLabel: "archives that compare" });
  menu.append(...spaces.map((space) => make("option", { textContent: space.title })));
  menu.onchange = () => { goTo(menu.selectedIndex); chooseBest(); };
  metric.append(...Object.keys(archives[0].curves).map((name) => make("option", { textContent: name })));
  head.append(spaces.length > 1 ? menu : note(spaces[0].title), notes, chips, where, scale);
  bottom.append(make("div", { className: "tools" }, player, metric, make("p", {}, clock, " evaluations")), make("div", { className: "track" }, chart, slider));
  side.append(note("Click a cell to play its elite."));
  root.append(head, grid, side, bottom, tests);
  listen();
  menu.selectedIndex = spaces.indexOf(archives[0].space);
  goTo(menu.selectedIndex);
  if (!follow()) chooseBest();
  const mapOf = (id) => maps.find((map) => map.archive.id === id);
  globalThis.explore = { get archives() { return archives; }, state, panel, colors, mapOf };  // for the console of the browser, and for tests
  document.documentElement.dataset.explore = "ready";
  followRuns();
  compare().catch((error) => tests.replaceChildren(note(error.message)));
}
start().catch((error) => {
  root.append(note(error.message));
  document.documentElement.dataset.explore = "failed";
});
