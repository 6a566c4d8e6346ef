// Data: requests with the token, or parts of a report, and archives over time.
const root = document.querySelector(".walk"), isServed = document.body.classList.contains("alone");
const make = (tag, props = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), props);
  element.append(...children);
  return element;
};
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
// An axis has no room for ten digits.
const number = (value, digits = 4) => {
  const notation = Math.abs(value) < 1e9 ? "standard" : "scientific";
  return value.toLocaleString("en", { maximumSignificantDigits: digits, notation }).replace("-", "\u2212");
};
const count = (value) => Math.round(value).toLocaleString("en");
const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

// The address is #token=TOKEN, #RUN/CELL, or both with & between them. The token leaves the address at once.
function readAddress() {
  const [, token, link] = location.hash.match(/^#?(?:token=([\w-]+))?&?(.*)$/);
  if (token) {
    sessionStorage.setItem("token", token);
    history.replaceState(null, "", link ? `#${link}` : location.pathname);
  }
  const [id, cell] = decodeURIComponent(link).split("/");
  return { token, id, cell: Number(cell) };
}
async function get(name, signal) {
  const part = document.getElementById(`explore/${name}`);
  if (part) return new Response(bytesOf(part.textContent));
  if (!isServed) throw new Error(`The command "qdsweep explore ${index.title}" plays this elite.`);
  const headers = { Authorization: `Bearer ${sessionStorage.getItem("token") ?? ""}` };
  const answer = await fetch(name, { headers, signal }).catch((error) => {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer. Start qdsweep explore again, and open its new address.");
  });
  if (!answer.ok) throw new Error((await answer.text()) || `The server answers with the status ${answer.status}.`);
  return answer;
}

// The place at which `value` would be inserted into sorted numbers, after equal ones.
function after(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) low = middle + 1; else high = middle;
  }
  return low;
}

const joined = (first, second) => {
  const both = new first.constructor(first.length + second.length);
  both.set(first); both.set(second, first.length);
  return both;
};

// Numbers and their sum, which is always computed from two parts: differences lose digits beside a huge number.
class Sum {
  constructor(count) {
    this.first = 1;
    while (this.first < count) this.first *= 2;
    this.parts = new Float64Array(2 * this.first);
  }
  set(place, value) {
    const { parts } = this;
    let node = this.first + place;
    parts[node] = value;
    for (node >>= 1; node; node >>= 1) parts[node] = parts[2 * node] + parts[2 * node + 1];
  }
  get total() { return this.parts[1]; }
}

// All changes of an archive. `holder` has the insertion that each cell holds at the current time, or -1. A cell
// without an objective (NaN) became empty.
class Archive {
  constructor(about, space, buffer) {
    Object.assign(this, { space, exact: true, isApproximate: false, end: 0, frame: 0, objective: new Float32Array(0) });
    Object.assign(this, { evaluations: new Uint32Array(0), ends: new Uint32Array(0), cell: new Uint32Array(0) });
    this.holder = new Int32Array(space.cells).fill(-1);
    this.add(about, buffer);
  }
  add(about, buffer) {  // what follows; `buffer` has the columns of data.py
    Object.assign(this, about, { space: this.space });
    let at = 20;
    const column = (Type, size) => {  // undoes the regrouping of bytes
      const from = new Uint8Array(buffer, at, 4 * size), to = new Uint8Array(4 * size);
      for (let b = 0; b < 4; b++) for (let i = 0; i < size; i++) to[4 * i + b] = from[b * size + i];
      at += 4 * size;
      return new Type(to.buffer);
    };
    const summed = (values) => {
      for (let i = 1; i < values.length; i++) values[i] += values[i - 1];
      return values;
    };
    const [frames, insertions, elites, measures, flags] = new Uint32Array(buffer, 0, 5);
    this.exact &&= (flags & 1) === 1;
    this.isApproximate ||= (flags & 2) === 2;
    this.evaluations = joined(this.evaluations, column(Uint32Array, frames));
    const before = this.cell.length, ends = summed(column(Uint32Array, frames));
    this.ends = joined(this.ends, ends.map((end) => before + end));
    this.cell = joined(this.cell, summed(column(Uint32Array, insertions)));
    this.objective = joined(this.objective, column(Float32Array, insertions));
    this.final = summed(column(Uint32Array, elites));
    this.measures = column(Float32Array, elites * measures);
    this.rowOf = new Map(Array.from(this.final, (cell, row) => [cell, row]));
    this.curves = this.follow();
  }
  follow() {  // the metrics after each frame
    const isFilled = new Uint8Array(this.space.cells), scores = new Sum(this.space.cells);
    const curves = { "QD score": [], "Coverage [%]": [], "Best objective so far": [] };
    let filled = 0, best = -Infinity, i = 0;
    for (const end of this.ends) {
      for (; i < end; i++) {
        const cell = this.cell[i], value = this.objective[i], isElite = !Number.isNaN(value);
        filled += isElite - isFilled[cell];
        isFilled[cell] = isElite;
        scores.set(cell, isElite ? value - this.space.offset : 0);
        if (isElite) best = Math.max(best, value);
      }
      curves["QD score"].push(scores.total);
      curves["Coverage [%]"].push((100 * filled) / this.space.cells);
      curves["Best objective so far"].push(best);
    }
    return curves;
  }
  go(evaluations) {
    this.frame = after(this.evaluations, evaluations);
    const end = this.frame ? this.ends[this.frame - 1] : 0;
    if (end < this.end) { this.holder.fill(-1); this.end = 0; }
    for (; this.end < end; this.end++) this.holder[this.cell[this.end]] = this.isEmptied(this.end) ? -1 : this.end;
  }
  isEmptied(change) { return Number.isNaN(this.objective[change]); }
  value(cell) {
    const insertion = this.holder[cell] ?? -1;
    return insertion < 0 ? null : this.objective[insertion];
  }
  when(insertion) { return this.evaluations[after(this.ends, insertion)]; }
  isFinal(cell) { return this.holder[cell] === this.cell.lastIndexOf(cell); }
  history(cell) {  // the times and objectives of its elites; NaN where it became empty
    const steps = [];
    for (let i = this.cell.indexOf(cell); i >= 0; i = this.cell.indexOf(cell, i + 1)) {
      steps.push([this.when(i), this.objective[i]]);
    }
    return steps;
  }
  measuresOf(cell) {  // of the final elite
    const row = this.rowOf.get(cell), rows = this.final.length;
    return row === undefined ? null : this.space.measures.map((_, m) => this.measures[m * rows + row]);
  }
}
