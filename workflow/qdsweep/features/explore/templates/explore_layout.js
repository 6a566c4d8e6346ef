// Layout: where the cells of an archive are. A layout is a picture with a cell in each pixel, -1 for none.
const SIDE = 640;  // pixels of a layout that follows points
const isFramed = (space) => space.measures.length <= 2;

function layoutOf(space) {
  if (space.points) {
    const { buffer } = bytesOf(space.points);
    Object.assign(space, { text: space.points, points: space.wide ? new Float64Array(buffer) : new Float32Array(buffer) });
  }
  const m = space.measures.length;
  space.stride = m === 1 && !space.filled ? 2 : m;  // the second number is then the objective
  if (!space.dims && m > 2) return null;  // parallel axes
  const layout = space.dims ? nested(space.dims) : m === 1 && space.filled ? intervals(space) : nearest(space);
  const { cell, width } = layout, places = new Map();  // cell -> mean place, box
  for (let p = 0; p < cell.length; p++) {
    if (cell[p] < 0) continue;
    const x = p % width, y = (p - x) / width;
    const place = places.get(cell[p]) ?? { n: 0, x: 0, y: 0, left: x, right: x, top: y, bottom: y };
    places.set(cell[p], place);
    place.n++; place.x += x + 0.5; place.y += y + 0.5;
    place.left = Math.min(place.left, x); place.right = Math.max(place.right, x); place.bottom = y;
  }
  for (const place of places.values()) { place.x /= place.n; place.y /= place.n; }
  return { ...layout, places };
}
// Measures 1 and 2 span a map. Measures 3 and 4 put maps in columns and rows, 5 and 6 those again, and so on.
function nested(dims) {
  if (dims.length === 1) {
    const wide = Math.ceil(SIDE / dims[0]);  // pixels of a bar
    return bars(Int32Array.from({ length: wide * dims[0] }, (_, x) => Math.floor(x / wide)));
  }
  const offsets = [];  // of each measure: index along it -> pixels to the right and up
  let size = [1, 1];
  for (let m = 0; m < dims.length; m += 2) {
    const gap = m ? Math.max(m / 2, Math.round(size[0] / 15)) : 0, [w, h] = [size[0] + gap, size[1] + gap];
    const isLast = m + 1 === dims.length;  // a last measure without a partner: maps row by row
    const across = isLast ? Math.ceil(Math.sqrt(dims[m])) : dims[m];
    const down = isLast ? Math.ceil(dims[m] / across) : dims[m + 1];
    offsets.push((i) => [(i % across) * w, isLast ? (down - 1 - Math.floor(i / across)) * h : 0], (i) => [0, i * h]);
    size = [across * w - gap, down * h - gap];
  }
  const [width, height] = size, cell = new Int32Array(width * height).fill(-1);
  const cells = dims.reduce((a, b) => a * b);
  for (let c = 0; c < cells; c++) {
    let [x, y, rest] = [0, 0, c];
    for (let m = dims.length - 1; m >= 0; m--) {
      const [right, up] = offsets[m](rest % dims[m]);
      x += right; y += up; rest = Math.floor(rest / dims[m]);
    }
    cell[(height - 1 - y) * width + x] = c;
  }
  return { width, height, cell };
}
// One measure: a bar for each cell.
function bars(columns) {
  const width = columns.length, height = Math.round(width / 1.4), cell = new Int32Array(width * height);
  for (let row = 0; row < height; row++) cell.set(columns, row * width);
  return { width, height, cell, bars: true };
}
function intervals({ points, ranges: [[low, high]] }) {
  const order = Array.from(points.keys()).sort((a, b) => points[a] - points[b]);
  let i = 0;
  return bars(Int32Array.from({ length: SIDE }, (_, x) => {
    const value = low + ((x + 0.5) / SIDE) * (high - low);
    while (i + 1 < order.length && value - points[order[i]] > points[order[i + 1]] - value) i++;
    return order[i];
  }));
}
// The nearest point of each pixel, in the units of the measures (CVT). Without cells, each elite is a disc.
function nearest({ points, ranges, filled, low, high }) {
  const [[x0, x1], [y0, y1]] = [ranges[0], ranges[1] ?? [low, high]];
  const n = points.length / 2, side = Math.max(1, Math.floor(Math.sqrt(n / 2))), size = SIDE / side;
  const [ux, uy] = [(x1 - x0 || 1) / SIDE, (y1 - y0 || 1) / SIDE];
  const buckets = Array.from({ length: side * side }, () => []), bucket = (v) => clamp(Math.floor(v / size), 0, side - 1);
  const px = new Float32Array(n), py = new Float32Array(n);
  for (let i = 0; i < n; i++) {
    px[i] = (points[2 * i] - x0) / ux; py[i] = SIDE - (points[2 * i + 1] - y0) / uy;
    buckets[bucket(py[i]) * side + bucket(px[i])].push(i);
  }
  const cell = new Int32Array(SIDE * SIDE).fill(-1), reach = filled ? Infinity : clamp(120 / Math.sqrt(n), 3, 9);
  for (let y = 0; y < SIDE; y++) for (let x = 0; x < SIDE; x++) {
    const [bx, by] = [bucket(x), bucket(y)];
    let best = Infinity, which = -1;
    for (let ring = 0; ring <= side; ring++) {  // buckets farther and farther away
      for (let j = Math.max(0, by - ring); j <= Math.min(side - 1, by + ring); j++) {
        const step = Math.abs(j - by) === ring || !ring ? 1 : 2 * ring;
        for (let i = bx - ring; i <= bx + ring; i += step) if (i >= 0 && i < side) for (const p of buckets[j * side + i]) {
          const [dx, dy] = [px[p] - x - 0.5, py[p] - y - 0.5], far = filled ? (dx * ux) ** 2 + (dy * uy) ** 2 : dx * dx + dy * dy;
          if (far < best) { best = far; which = p; }
        }
      }
      if (best <= (ring * size * (filled ? Math.min(ux, uy) : 1)) ** 2 || ring * size > reach) break;
    }
    if (best <= reach * reach) cell[y * SIDE + x] = which;
  }
  return { width: SIDE, height: SIDE, cell, lines: filled && n <= 2500 };
}
// The range of each measure in a cell; for a cell of a point, the point twice.
function bounds({ dims, ranges, measures, points, stride }, cell) {
  if (!dims) return measures.map((_, m) => [points[cell * stride + m], points[cell * stride + m]]);
  const ends = [];
  for (let m = dims.length - 1, rest = cell; m >= 0; rest = Math.floor(rest / dims[m]), m--) {
    const [low, high] = ranges[m], step = (high - low) / dims[m], i = rest % dims[m];
    ends.unshift([low + i * step, low + (i + 1) * step]);
  }
  return ends;
}
const describeCell = (space, cell) => bounds(space, cell).map(([low, high], m) =>
  `${space.measures[m]} ${low === high ? `\u2248 ${number(low, 3)}` : `${number(low, 3)} to ${number(high, 3)}`}`).join(",  ");
// The line of Python that returns the elite of a cell.
function python(archive, cell) {
  const { space } = archive, load = `qdsweep.load(${JSON.stringify(archive.path)})`;
  if (!space.dims && !space.filled) return `${load}.elite(${cell})`;
  const point = bounds(space, cell).map(([low, high]) => {
    const middle = (low + high) / 2;  // with the fewest digits that are well inside
    for (let digits = 2; digits < 16; digits++) {
      const short = Number(middle.toPrecision(digits));
      if (low === high ? digits > (space.wide ? 14 : 7) : Math.abs(short - middle) < (high - low) / 4) return short;
    }
    return middle;
  });
  return `${load}.at([${point.join(", ")}])`;
}
