// Maps: the state of the page, and one map per run, the colour scale and the learning curves.
const state = { space: 0, time: 0, hover: -1, run: -1, cell: -1, metric: "QD score", playing: false, hidden: new Set() };
let index, spaces, colors, archives = [], maps = [];
let changes = new Set(), isPending = false;
const redraw = (...what) => {  // at most once per frame of the screen
  for (const change of what) changes.add(change);
  if (isPending) return;
  isPending = true;
  requestAnimationFrame(() => { const now = changes; isPending = false; changes = new Set(); draw(now); });
};
const shown = () => archives.filter((archive) => archive.space === spaces[state.space] && !state.hidden.has(archive.place));
const chosen = () => archives.find((archive) => archive.place === state.run);
const longest = () => Math.max(1, ...shown().map((archive) => archive.evaluations.at(-1) ?? 0));
const level = (space, value) => clamp((value - space.low) / (space.high - space.low), 0, 1);
const colorOf = (space, value) => colors[Math.round(255 * level(space, value))];
const css = (packed) => `rgb(${packed & 255} ${(packed >> 8) & 255} ${(packed >> 16) & 255})`;
const packed = (hex) => {
  const value = Number.parseInt(hex.slice(1), 16);
  return 0xff000000 | ((value & 255) << 16) | (value & 0xff00) | (value >> 16);
};
const style = (name) => getComputedStyle(root).getPropertyValue(name).trim();
const isDark = matchMedia("(prefers-color-scheme: dark)");
// The colour of a run; black is not seen on a dark page.
const lineColor = ({ color }) => {
  const value = packed(color), brightest = Math.max(value & 255, (value >> 8) & 255, (value >> 16) & 255);
  return isDark.matches && brightest < 80 ? style("--ink") : color;
};
const DASHES = [[], [7, 3], [2, 2], [7, 3, 2, 3]];

// Resizes a canvas to the pixels of its place. Returns its context in CSS pixels, width and height.
function fit(canvas, height) {
  const width = canvas.clientWidth, scale = devicePixelRatio || 1, [w, h] = [width, height].map((v) => Math.round(v * scale));
  canvas.style.height = `${height}px`;
  if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
  const c = canvas.getContext("2d");
  c.setTransform(scale, 0, 0, scale, 0, 0);
  c.clearRect(0, 0, width, height);
  c.font = `11px ${getComputedStyle(root).fontFamily}`;
  return [c, width, height];
}
const line = (c, ...points) => {
  c.beginPath();
  for (const [x, y] of points) c.lineTo(x, y);
  c.stroke();
};
const circle = (c, x, y, radius) => { c.beginPath(); c.arc(x, y, radius, 0, 7); };
// Draws twice, so that it is seen on any colour: wide and black, then narrow and white.
const twice = (c, widths, stroke) => [["#000", widths[0]], ["#fff", widths[1]]].forEach(([color, width]) => {
  c.strokeStyle = color; c.lineWidth = width; stroke();
});
const write = (c, text, x, y) => {  // with a halo, so that it is read on lines
  c.save();
  c.strokeStyle = style("--page"); c.lineWidth = 3; c.lineJoin = "round";
  c.strokeText(text, x, y); c.fillText(text, x, y);
  c.restore();
};
function ticks(low, high, most) {
  const raw = (high - low) / most, ten = 10 ** Math.floor(Math.log10(raw)), values = [];
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * ten).find((size) => size >= raw * 0.999);
  for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + step * 1e-9 && values.length <= most; v += step) values.push(Math.abs(v) < step / 1e6 ? 0 : v);
  return values;
}

function draw(what) {
  const space = spaces[state.space], cell = state.hover >= 0 ? state.hover : state.cell;
  if (what.has("time")) {
    for (const archive of shown()) archive.go(state.time);
    for (const map of maps) map.paint();
    slider.value = state.time;
    slider.setAttribute("aria-valuetext", `${count(state.time)} evaluations`);
    clock.textContent = count(state.time);
  }
  for (const map of maps) map.draw();
  drawScale(space);
  if (!bottom.hidden) drawCurves();
  if (chosen() && (what.has("cell") || what.has("time"))) drawHistory();
  where.textContent = state.hover < 0 ? hint() : describeCell(space, cell);
  for (const map of maps) map.describe(cell);
}

class ArchiveMap {
  constructor(archive) {
    this.archive = archive;
    this.picture = document.createElement("canvas");
    this.canvas = make("canvas", { tabIndex: 0, role: "img",
      ariaLabel: `Archive of ${archive.label}. Arrows move to the next cell, Enter plays its elite.` });
    this.value = make("span");
    this.key = make("canvas");
    this.element = make("figure", {}, make("figcaption", {}, this.key, make("b", { textContent: archive.label, title: archive.label }), this.value), this.canvas);
    const at = (event) => this.cellAt(event.offsetX, event.offsetY);
    this.canvas.addEventListener("pointermove", (event) => { state.hover = at(event); redraw(); });
    this.canvas.addEventListener("pointerleave", () => { state.hover = -1; redraw(); });
    this.canvas.addEventListener("click", (event) => {
      const [px, py] = [event.offsetX - this.left, event.offsetY - this.top];
      const cell = this.films().find((film) => Math.hypot(this.middle(film)[0] - px, this.middle(film)[1] - py) < 7) ?? at(event);
      if (cell < 0) return;
      choose(archive, cell);
      if (innerWidth <= 760) side.scrollIntoView({ behavior: "smooth" });
    });
    this.canvas.addEventListener("keydown", (event) => {
      const from = state.hover >= 0 ? state.hover : state.cell;
      const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (move) { state.hover = this.next(from, ...move); redraw(); }
      if (event.key === "Enter" && from >= 0) choose(archive, from);
      if (move || event.key === "Enter") event.preventDefault();
    });
  }
  paint() {  // the picture of the cells at the current time
    const { archive, picture } = this, { space, holder, objective } = archive, { layout } = space;
    this.isOld = true;
    if (!layout) return;
    const { cell, width, height, bars, lines } = layout;
    if (!this.image) {
      Object.assign(picture, { width, height });
      this.image = new ImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    const { pixels } = this, empty = packed(style("--empty")), border = packed(style("--border"));
    const color = new Uint32Array(space.cells).fill(empty);
    for (let c = 0; c < color.length; c++) if (holder[c] >= 0) color[c] = colorOf(space, objective[holder[c]]);
    for (let p = 0; p < cell.length; p++) pixels[p] = cell[p] < 0 ? 0 : color[cell[p]];
    if (lines) for (let p = 0; p < cell.length - width; p++) if (cell[p] !== cell[p + 1] || cell[p] !== cell[p + width]) pixels[p] = border;
    if (bars) for (let p = 0; p < cell.length; p++) {
      const value = archive.value(cell[p]);
      if (value !== null && 1 - Math.floor(p / width) / height > Math.max(level(space, value), 0.01)) pixels[p] = empty;
    }
    picture.getContext("2d").putImageData(this.image, 0, 0);
  }
  draw() {
    const { archive, canvas } = this, { space } = archive, { layout } = space;
    const framed = !layout || isFramed(space), left = framed ? 44 : 20, below = framed ? 34 : 22;
    const inside = canvas.clientWidth - left - 6;
    const high = layout ? clamp((inside * layout.height) / layout.width, 80, 1.15 * inside) : 0.8 * inside;
    const [c] = fit(canvas, high + below + 6);
    Object.assign(this, { left, top: 6, inside, high });
    c.translate(left, 6);
    if (layout) {
      c.imageSmoothingEnabled = layout.width >= SIDE;
      c.drawImage(this.picture, 0, 0, inside, high);
      if (framed) this.drawAxes(c); else this.drawNames(c);
      this.drawMarks(c);
    } else this.drawLines(c);
    const [k] = fit(this.key, 10);
    k.strokeStyle = lineColor(archive); k.lineWidth = 2.5; k.setLineDash(DASHES[archive.dash]);
    line(k, [0, 5], [18, 5]);
  }
  drawAxes(c) {
    const { space } = this.archive, { inside, high } = this, names = [...space.measures, "objective"];
    const [across, up] = [...space.ranges, [space.low, space.high]];
    c.fillStyle = style("--soft"); c.strokeStyle = style("--line"); c.lineWidth = 1;
    c.textAlign = "center"; c.textBaseline = "top";
    for (const v of ticks(...across, 4)) {
      const x = ((v - across[0]) / (across[1] - across[0])) * inside;
      line(c, [x, high], [x, high + 4]);
      c.fillText(number(v), x, high + 5);
    }
    c.fillText(names[0], inside / 2, high + 20);
    c.textAlign = "right"; c.textBaseline = "middle";
    for (const v of ticks(...up, 5)) {
      const y = high - ((v - up[0]) / (up[1] - up[0])) * high;
      line(c, [-4, y], [0, y]);
      c.fillText(number(v), -6, y);
    }
    this.writeUpwards(c, names[1], -36);
  }
  writeUpwards(c, text, x) {
    c.save();
    c.translate(x, this.high / 2); c.rotate(-Math.PI / 2);
    c.textAlign = "center"; c.textBaseline = "middle";
    c.fillText(text, 0, 0, this.high);
    c.restore();
  }
  drawNames(c) {  // of maps in maps: inside, around them, around those
    const { measures } = this.archive.space, last = measures.length % 2 ? measures.at(-1) : null;
    const named = (odd) => measures.filter((name, m) => m % 2 === odd && name !== last).join(" in ");
    c.fillStyle = style("--soft"); c.textAlign = "center"; c.textBaseline = "top";
    c.fillText(named(0) + (last ? `, one map per cell of ${last}, row by row` : ""), this.inside / 2, this.high + 7, this.inside);
    this.writeUpwards(c, named(1), -10);
  }
  outline(c, cell, width) {
    const { layout } = this.archive.space, place = layout.places.get(cell);
    if (!place) return;
    const [sx, sy] = [this.inside / layout.width, this.high / layout.height], path = new Path2D();
    const isIn = (x, y) => x >= 0 && x < layout.width && layout.cell[y * layout.width + x] === cell;
    for (let y = place.top; y <= place.bottom; y++) for (let x = place.left; x <= place.right; x++) if (isIn(x, y)) {
      const [l, r, t, b] = [x * sx, (x + 1) * sx, y * sy, (y + 1) * sy];
      for (const [dx, dy, ...side] of [[-1, 0, l, t, l, b], [1, 0, r, t, r, b], [0, -1, l, t, r, t], [0, 1, l, b, r, b]]) {
        if (!isIn(x + dx, y + dy)) { path.moveTo(side[0], side[1]); path.lineTo(side[2], side[3]); }
      }
    }
    c.lineCap = "square";
    twice(c, [width + 1.8, width], () => c.stroke(path));
  }
  middle(cell) {
    const { layout } = this.archive.space, place = layout.places.get(cell);
    return place && [(place.x * this.inside) / layout.width, (place.y * this.high) / layout.height];
  }
  films() {  // the cells that a report can play
    const own = `film/${this.archive.source}/`, cells = (index.films ?? []).filter((film) => film.startsWith(own)).map((film) => Number(film.slice(own.length)));
    return cells.filter((cell) => this.archive.space.layout?.places.has(cell));
  }
  spot(measures) {  // the place of two measures
    return measures.map((value, m) => {
      const [low, high] = this.archive.space.ranges[m], share = (value - low) / (high - low);
      return m ? (1 - share) * this.high : share * this.inside;
    });
  }
  drawMarks(c) {
    const { archive, inside, high } = this, { space } = archive, isChosen = archive.place === state.run;
    const at = state.hover >= 0 && isFramed(space) && this.middle(state.hover);
    if (at) {
      c.strokeStyle = style("--cross"); c.lineWidth = 1; c.setLineDash([3, 3]);
      line(c, [at[0], 0], [at[0], high]); line(c, [0, at[1]], [inside, at[1]]);
      c.setLineDash([]);
    }
    if (state.hover >= 0) this.outline(c, state.hover, 1);
    if (state.cell >= 0) this.outline(c, state.cell, isChosen ? 2.5 : 1);
    for (const place of this.films().map((cell) => this.middle(cell))) twice(c, [3, 1.4], () => { circle(c, ...place, 4); c.stroke(); });
    if (!isChosen || space.measures.length !== 2) return;
    for (const points of panel.lines ?? []) {
      const path = points.map((point) => this.spot(point));
      c.lineJoin = "round";
      twice(c, [4.5, 2.2], () => line(c, ...path));
      for (const [x, y] of path) { circle(c, x, y, 2.6); c.fillStyle = "#fff"; c.fill(); c.strokeStyle = "#000"; c.lineWidth = 1; c.stroke(); }
    }
    const from = this.middle(state.cell);
    if (from) for (const [objective, ...measures] of panel.fresh ?? []) {
      const [x, y] = this.spot(measures), to = [clamp(x, 0, inside), clamp(y, 0, high)];
      c.strokeStyle = "#ffffffb0"; c.lineWidth = 1;
      line(c, from, to);
      circle(c, ...to, 4.5);
      twice(c, [4, 2.4], () => c.stroke());
      c.fillStyle = css(colorOf(space, objective)); c.fill();
    }
  }
  // Parallel axes: a line for each elite, the best on top. They are drawn once per time and size.
  drawLines(c) {
    const { archive, inside, high, picture } = this, { space } = archive, { points, ranges, stride, measures } = space, last = stride - 1;
    const x = (m) => 10 + (m * (inside - 20)) / last;
    const y = (cell, m) => high - ((points[cell * stride + m] - ranges[m][0]) / (ranges[m][1] - ranges[m][0] || 1)) * high;
    const path = (context, cell) => line(context, ...measures.map((_, m) => [x(m), y(cell, m)]));
    const scale = devicePixelRatio || 1, w = Math.round(inside * scale), h = Math.round(high * scale);
    if (this.isOld || picture.width !== w || picture.height !== h) {
      this.isOld = false;
      this.order = [...archive.holder.keys()].filter((cell) => archive.holder[cell] >= 0).sort((a, b) => archive.value(a) - archive.value(b));
      Object.assign(picture, { width: w, height: h });
      const p = picture.getContext("2d");
      p.scale(scale, scale); p.globalAlpha = 0.7; p.lineWidth = clamp(600 / this.order.length, 0.35, 1.5);
      for (const cell of this.order) { p.strokeStyle = css(colorOf(space, archive.value(cell))); path(p, cell); }
    }
    c.drawImage(picture, 0, 0, inside, high);
    c.fillStyle = c.strokeStyle = style("--soft"); c.lineWidth = 1; c.textBaseline = "top";
    measures.forEach((name, m) => {
      line(c, [x(m), 0], [x(m), high]);
      c.textAlign = m === last ? "right" : m ? "center" : "left";
      c.fillText(name, x(m), high + (m % 2 ? 18 : 5), 110);
      const side = m === last ? -4 : 4;  // the ends of the range
      c.textAlign = m === last ? "right" : "left";
      ranges[m].forEach((value, end) => { write(c, number(value), x(m) + side, end ? 2 : high - 13); });
    });
    for (const [cell, width] of [[state.hover, 2], [state.cell, 3]]) if (cell >= 0) twice(c, [width + 2.5, width], () => path(c, cell));
    this.nearestLine = (px, py) => {
      const m = clamp(Math.floor(((px - 10) / (inside - 20)) * last), 0, last - 1), share = clamp((px - x(m)) / (x(m + 1) - x(m)), 0, 1);
      let best = 12, which = -1;
      for (const cell of this.order) {
        const far = Math.abs(y(cell, m) * (1 - share) + y(cell, m + 1) * share - py);
        if (far <= best) { best = far; which = cell; }
      }
      return which;
    };
  }
  cellAt(x, y) {
    const { layout } = this.archive.space, [px, py] = [x - this.left, y - this.top];
    if (!layout) return this.nearestLine(px, py);
    const [i, j] = [Math.floor((px / this.inside) * layout.width), Math.floor((py / this.high) * layout.height)];
    return i < 0 || j < 0 || i >= layout.width || j >= layout.height ? -1 : layout.cell[j * layout.width + i];
  }
  next(cell, dx, dy) {  // the next cell in a direction
    const { layout, cells } = this.archive.space;
    if (!layout) {
      const at = this.order.indexOf(cell);
      return this.order[clamp(at + dx - dy, 0, this.order.length - 1)] ?? clamp(cell, 0, cells - 1);
    }
    const { width, height } = layout, from = layout.places.get(cell) ?? { x: width / 2, y: height / 2 };
    for (let x = Math.floor(from.x) + dx, y = Math.floor(from.y) + dy; x >= 0 && y >= 0 && x < width && y < height; x += dx, y += dy) {
      const other = layout.cell[y * width + x];
      if (other >= 0 && other !== cell) return other;
    }
    return cell;
  }
  describe(cell) {  // the objective in the cell, or the score of the archive
    const { archive } = this, value = cell < 0 ? null : archive.value(cell), f = archive.frame - 1;
    const by = archive.exact ? "at" : "by";
    this.value.textContent = cell < 0
      ? f < 0 ? "no elites yet" : `${count(archive.curves["QD score"][f])} \u00b7 ${archive.curves["Coverage [%]"][f].toFixed(1)} %`
      : value === null ? "no elite" : `${number(value, 3)} ${by} ${count(archive.when(archive.holder[cell]))}`;
    this.value.classList.toggle("of", value !== null);
    this.element.classList.toggle("live", archive.live);
  }
}

// The colour scale, with a mark for the objective of each run in the cell.
function drawScale(space) {
  const [c, width] = fit(scale, 42), wide = width - 100, left = 24, cell = state.hover >= 0 ? state.hover : state.cell;
  for (let i = 0; i < 256; i++) { c.fillStyle = css(colors[i]); c.fillRect(left + (i * wide) / 256, 12, wide / 256 + 1, 10); }
  c.fillStyle = style("--soft"); c.textAlign = "center"; c.textBaseline = "top";
  for (const v of ticks(space.low, space.high, 5)) c.fillText(number(v), left + level(space, v) * wide, 26);
  c.textAlign = "left"; c.textBaseline = "middle";
  c.fillText("objective", left + wide + 10, 17);
  for (const archive of cell < 0 ? [] : shown()) {
    const value = archive.value(cell);
    if (value === null) continue;
    const x = left + level(space, value) * wide;
    c.fillStyle = lineColor(archive); c.strokeStyle = style("--page"); c.lineWidth = 1;
    line(c, [x, 13], [x - 4.5, 4], [x + 4.5, 4], [x, 13]);
    c.fill();
  }
}

// Learning curves. The time is dragged over them.
const CHART = { left: 66, right: 30, top: 8, below: 38, high: 132 };
function drawCurves() {
  const [c, width] = fit(chart, CHART.high), most = longest(), runs = shown();
  const curves = runs.map((archive) => archive.curves[state.metric]);
  let [low, high] = [state.metric === "Best objective so far" ? Infinity : 0, -Infinity];
  for (const value of curves.flat()) if (Number.isFinite(value)) { low = Math.min(low, value); high = Math.max(high, value); }
  if (!(high > low)) { low = Number.isFinite(low) ? low : 0; high = low + 1; }
  const x = (evaluations) => CHART.left + (evaluations / most) * (width - CHART.left - CHART.right);
  const y = (value) => CHART.top + (1 - (value - low) / (high - low)) * (CHART.high - CHART.top - CHART.below);
  c.strokeStyle = style("--line"); c.fillStyle = style("--soft"); c.lineWidth = 1; c.textBaseline = "middle"; c.textAlign = "right";
  for (const v of ticks(low, high, 3)) {
    line(c, [CHART.left, y(v)], [width - CHART.right, y(v)]);
    c.fillText(number(v), CHART.left - 8, y(v));
  }
  c.textAlign = "center";
  for (const v of ticks(0, most, clamp(width / 90, 2, 8))) c.fillText(count(v), x(v), CHART.high - 6);
  c.lineWidth = 1.8;
  runs.forEach((archive, i) => {
    const step = Math.max(1, Math.floor(curves[i].length / 800)), points = [];
    c.strokeStyle = lineColor(archive); c.setLineDash(DASHES[archive.dash]); c.globalAlpha = state.run < 0 || archive.place === state.run ? 1 : 0.45;
    curves[i].forEach((value, f) => { if (f % step === 0 || f === curves[i].length - 1) points.push([x(archive.evaluations[f]), y(value)]); });
    line(c, ...points);
  });
  c.globalAlpha = 1; c.setLineDash([]); c.strokeStyle = style("--ink"); c.lineWidth = 1;
  line(c, [x(state.time), 0], [x(state.time), CHART.high - CHART.below + 8]);
  runs.forEach((archive, i) => {
    if (!archive.frame) return;
    circle(c, x(state.time), y(curves[i][archive.frame - 1]), 3.5);
    c.fillStyle = lineColor(archive); c.fill(); c.strokeStyle = style("--page"); c.stroke();
  });
}
