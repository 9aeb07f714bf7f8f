"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const { glance, shown } = data;
const columns = glance.columns.slice(0, shown);
const ink = () => getComputedStyle(document.body).color;
const number = (value) => Number(value.toPrecision(4)).toString();
const longest = 22;
const brief = (name) => (name.length > longest ? name.slice(0, longest - 1) + "…" : name);

// Blue for low, grey for the middle, red for high.
function colour(part) {
  const ends = [[33, 102, 172], [150, 150, 150], [178, 24, 43]];
  const at = Math.min(Math.max(part, 0), 1) * 2;
  const [from, to, share] = at < 1 ? [ends[0], ends[1], at] : [ends[1], ends[2], at - 1];
  return `rgb(${from.map((v, i) => Math.round(v + (to[i] - v) * share)).join(",")})`;
}

// A canvas of so many pixels of the page, drawn as sharp as the screen is.
function paper(id, width, height) {
  const canvas = document.getElementById(id);
  const scale = Math.min(window.devicePixelRatio || 1, 2);
  canvas.width = width * scale;
  canvas.height = height * scale;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.clearRect(0, 0, width, height);
  pen.font = "13px system-ui, sans-serif";
  pen.fillStyle = pen.strokeStyle = ink();
  pen.textBaseline = "middle";
  return pen;
}

const width = 900;
const left = 190;
const extent = (values) => values.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);

// Where values lie among each other, from 0 to 1: one far value does not make all others equal.
function ranks(values) {
  const sorted = Float64Array.from(values).sort();
  const first = (v) => { let a = 0, b = sorted.length; while (a < b) { const m = (a + b) >> 1; if (sorted[m] < v) a = m + 1; else b = m; } return a; };
  const last = (v) => { let a = 0, b = sorted.length; while (a < b) { const m = (a + b) >> 1; if (sorted[m] <= v) a = m + 1; else b = m; } return a; };
  return values.map((v) => (sorted.length < 2 || sorted[0] === sorted[sorted.length - 1] ? 0.5 : (first(v) + last(v) - 1) / 2 / (sorted.length - 1)));
}
const ranked = data.values.map(ranks);

function bars() {
  const pen = paper("bars", width, columns.length * 24 + 8);
  const most = Math.max(...columns.map((c) => c.weight.high ?? c.weight.mean)) || 1;
  const x = (v) => left + (v / most) * (width - left - 110);
  columns.forEach((c, i) => {
    const y = 16 + i * 24;
    pen.fillStyle = ink();
    pen.textAlign = "right";
    pen.fillText(brief(c.name), left - 10, y);
    pen.textAlign = "left";
    pen.fillText(number(c.weight.mean), x(c.weight.high ?? c.weight.mean) + 8, y);
    pen.fillStyle = "#0072b2";
    pen.fillRect(left, y - 8, Math.max(x(c.weight.mean) - left, 1), 16);
    if (c.weight.low !== null) {
      pen.fillStyle = ink();
      pen.fillRect(x(Math.max(c.weight.low, 0)), y - 1, x(c.weight.high) - x(Math.max(c.weight.low, 0)), 2);
    }
  });
}

function swarm() {
  const line = 34;
  const pen = paper("swarm", width, columns.length * line + 30);
  const [low, high] = extent(data.credit.flat().concat([0]));
  const x = (v) => left + ((v - low) / (high - low || 1)) * (width - left - 20);
  pen.fillRect(x(0), 0, 1, columns.length * line);
  columns.forEach((c, i) => {
    const middle = line / 2 + i * line;
    pen.fillStyle = ink();
    pen.textAlign = "right";
    pen.fillText(brief(c.name), left - 10, middle);
    // Points of one place are put above and below each other.
    const taken = new Map();
    data.credit[i].forEach((credit, row) => {
      const place = Math.round(x(credit) / 3);
      const count = taken.get(place) ?? 0;
      taken.set(place, count + 1);
      const step = Math.ceil(count / 2) * (count % 2 ? 1 : -1);
      pen.fillStyle = colour(ranked[i][row]);
      pen.beginPath();
      pen.arc(x(credit), middle + Math.max(Math.min(step * 2, line / 2 - 2), 2 - line / 2), 2, 0, 7);
      pen.fill();
    });
  });
  pen.fillStyle = ink();
  pen.textAlign = "center";
  for (const v of [low, 0, high]) pen.fillText(number(v), Math.min(Math.max(x(v), left), width - 40), columns.length * line + 14);
}

function dependence() {
  const [i, j] = ["column", "colour"].map((id) => Number(document.getElementById(id).value));
  const pen = paper("dependence", width, 340);
  const [credit, values] = [data.credit[i], data.values[i]];
  const [low, high] = extent(credit.concat([0]));
  const [least, most] = extent(values);
  const levels = columns[i].levels;
  const x = (v) => 70 + ((v - least) / (most - least || 1)) * (width - 110);
  const y = (v) => 300 - ((v - low) / (high - low || 1)) * 280;
  pen.globalAlpha = 0.5;
  pen.fillRect(70, y(0), width - 110, 1);
  pen.globalAlpha = 1;
  pen.textAlign = "right";
  for (const v of [low, 0, high]) pen.fillText(number(v), 62, y(v));
  pen.textAlign = "center";
  const marks = levels.length ? levels.map((name, at) => [at, brief(name)]).filter(([at]) => at >= least && at <= most) : [[least, number(least)], [most, number(most)]];
  marks.slice(0, 12).forEach(([at, name]) => pen.fillText(name, Math.min(Math.max(x(at), 60), width - 50), 322));
  values.forEach((value, row) => {
    // Rows of one level are spread a little, always in the same way.
    const aside = levels.length ? (((row * 7919) % 101) / 101 - 0.5) * Math.min(60, (width - 110) / Math.max(levels.length, 1) / 2) : 0;
    pen.fillStyle = colour(ranked[j][row]);
    pen.beginPath();
    pen.arc(x(value) + aside, y(credit[row]), 2.5, 0, 7);
    pen.fill();
  });
}

function heat() {
  const line = 20;
  const pen = paper("heat", width, columns.length * line + 4);
  const order = data.scores.map((_, row) => row).sort((a, b) => data.scores[a] - data.scores[b]);
  const sizes = data.credit.flat().map(Math.abs).sort((a, b) => a - b);
  const full = sizes[Math.floor(sizes.length * 0.98)] || 1;
  const step = (width - left - 10) / order.length;
  columns.forEach((c, i) => {
    pen.fillStyle = ink();
    pen.textAlign = "right";
    pen.fillText(brief(c.name), left - 10, line / 2 + i * line);
    order.forEach((row, place) => {
      pen.fillStyle = colour(0.5 + data.credit[i][row] / full / 2);
      pen.fillRect(left + place * step, i * line + 1, step + 0.5, line - 2);
    });
  });
}

function cohorts() {
  if (!glance.cohorts.length) return;
  document.getElementById("cohorts").hidden = false;
  const table = document.querySelector("#cohorts table");
  const cell = (row, tag, text) => (row.appendChild(document.createElement(tag)).textContent = text);
  const head = table.createTHead().insertRow();
  cell(head, "th", glance.by);
  glance.cohorts.forEach((c) => cell(head, "th", `${c.level} (${c.rows})`));
  const body = table.createTBody();
  const said = (m) => (m.low === null ? number(m.mean) : `${number(m.mean)} [${number(m.low)}, ${number(m.high)}]`);
  const line = (name, of) => {
    const row = body.insertRow();
    cell(row, "td", name);
    glance.cohorts.forEach((c) => cell(row, "td", said(of(c))));
  };
  line("score", (c) => c.score);
  columns.forEach((c, i) => line(c.name, (cohort) => cohort.lean[i]));
}

const several = glance.targets.length > 1 ? " Rows are explained for different outputs, so signs do not compare: choose one with --target." : "";
const few = data.scores.length < glance.rows ? ` Pictures of rows show ${data.scores.length} of them, evenly spread.` : "";
const less = shown < glance.columns.length ? ` The ${shown} heaviest of ${glance.columns.length} columns are drawn.` : "";
document.getElementById("about").textContent = `${glance.rows} rows by ${glance.method}.${few}${less}${several}`;
for (const [id, chosen] of [["column", 0], ["colour", Math.min(1, shown - 1)]]) {
  const select = document.getElementById(id);
  columns.forEach((c, i) => select.add(new Option(c.name, String(i))));
  select.value = String(chosen);
  select.addEventListener("change", dependence);
}
function draw() { bars(); swarm(); dependence(); heat(); }
draw();
cohorts();
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
