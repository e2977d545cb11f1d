"use strict";
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const report = data.report;
const find = id => document.getElementById(id);
const namespace = find("memory").namespaceURI;

// Names are only ever set as text, never as markup.
function fill(element, attributes, text) {
  for (const [name, value] of Object.entries(attributes || {}))
    element.setAttribute(name, value);
  if (text !== undefined)
    element.textContent = text;
  return element;
}
const element = (tag, attributes, text) => fill(document.createElement(tag), attributes, text);
const shape = (tag, attributes, text) => fill(document.createElementNS(namespace, tag), attributes, text);

// ---- words and numbers

function significant(value) {
  if (value >= 1000)
    return Math.round(value).toLocaleString("en-US");
  return value === 0 ? "0" : String(Number(value.toPrecision(4)));
}
const milliseconds = nanoseconds =>
    nanoseconds < 1e10 ? significant(nanoseconds / 1e6) + " ms" : significant(nanoseconds / 1e9) + " s";
const grouped = number => number.toLocaleString("en-US");
const percent = part => (100 * part).toFixed(1) + " %";
function binary(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0, size = bytes;
  for (; size >= 1024 && unit < 5; ++unit)
    size /= 1024;
  return size.toFixed(unit === 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2) + " " + units[unit];
}
const word = name => name.replaceAll("_", " ");

// `columns`: names, those of numbers with a leading "#". `rows`: of texts or elements.
function table(where, columns, rows, isSum) {
  const target = typeof where === "string" ? find(where) : where;
  target.replaceChildren();
  if (rows.length === 0)
    return;
  const isNumber = columns.map(name => name.startsWith("#"));
  const line = (tag, cells) => {
    const row = element("tr");
    cells.forEach((cell, i) => {
      const box = element(tag, isNumber[i] ? {class: "number"} : {});
      box.append(cell);
      row.append(box);
    });
    return row;
  };
  target.append(line("th", columns.map(name => name.replace("#", ""))));
  rows.forEach((cells, i) => {
    const row = line("td", cells);
    if (isSum && isSum[i])
      row.className = "sum";
    target.append(row);
  });
}

// ---- head

find("command").textContent = data.command;
find("place").textContent = `Mesh ${report.mesh}, ${report.ranks} ${report.ranks === 1 ? "rank" : "ranks"}; ` +
    `machine ${report.predicted_machine}, ${report.predicted_kernels} kernels` +
    (data.role === undefined ? "" : `; charts of ${data.role}, which computes for longest`);
function tile(name, value) {
  const box = element("div");
  box.append(element("b", {}, value), element("span", {}, name));
  find("tiles").append(box);
}
tile("predicted step", significant(report.predicted_step_ms) + " ms");
if (report.predicted_tokens_per_s !== undefined)
  tile("tokens/s of all ranks", significant(report.predicted_tokens_per_s));
else
  tile("samples/s of all ranks", significant(report.predicted_samples_per_s));
tile("MFU", percent(report.predicted_mfu));
tile("exposed communication", significant(report.predicted_exposed_ms) + " ms");
tile("efficiency", percent(report.predicted_efficiency));
tile("arena of a rank", binary(report.arena));
if (report.memory_limit !== undefined)
  tile("limit of " + binary(report.memory_limit), report.fits ? "fits" : "does not fit");

if (report.chosen !== undefined || (report.fitting_plans || []).length > 0) {
  find("choice").hidden = false;
  if (report.chosen !== undefined)
    find("choice").append(element("p", {}, report.chosen));
  const plans = element("table");
  table(plans, ["#arena", "#predicted step", "command that fits"], (report.fitting_plans || []).map(
      plan => [binary(plan.arena), significant(plan.predicted_step_ms) + " ms", plan.command]));
  find("choice").append(plans);
}

// ---- what both charts share: a window of time and a cursor

const left = 96, right = 1052, width = right - left;
const view = {from: 0, to: Math.max(data.end, 1), cursor: 0, bar: -1};
const x = time => left + (time - view.from) / (view.to - view.from) * width;
const drawers = [];
const draw = () => drawers.forEach(drawer => drawer());
function look(from, to) {
  const length = Math.min(Math.max(to - from, 100), data.end);
  view.from = Math.min(Math.max(from, 0), data.end - length);
  view.to = view.from + length;
  draw();
}

function ticks(svg, top, bottom) {
  const span = view.to - view.from;
  const power = Math.pow(10, Math.floor(Math.log10(span / 9)));
  const unit = power * [1, 2, 5, 10].find(factor => span / (power * factor) <= 9);
  for (let at = Math.ceil(view.from / unit) * unit; at <= view.to; at += unit) {
    svg.append(shape("line", {x1: x(at), x2: x(at), y1: top, y2: bottom, class: "axis"}),
               shape("text", {x: x(at), y: bottom + 14, "text-anchor": "middle", class: "small"}, milliseconds(at)));
  }
}
function lineOf(svg, time, name, top, bottom) {
  if (time < view.from || time > view.to)
    return;
  svg.append(shape("line", {x1: x(time), x2: x(time), y1: top, y2: bottom, stroke: "black"}));
  const isRight = x(time) > right - 130;
  svg.append(shape("text", {x: x(time) + (isRight ? -4 : 4), y: top + 10, class: "small",
                            "text-anchor": isRight ? "end" : "start"}, name));
}

// Moving shows what is alive there; dragging looks closer.
function follow(svg) {
  let since = null;
  const timeOf = event => {
    const box = svg.getBoundingClientRect();
    const place = (event.clientX - box.left) / box.width * 1060;
    return view.from + Math.min(Math.max((place - left) / width, 0), 1) * (view.to - view.from);
  };
  svg.addEventListener("pointerdown", event => { since = timeOf(event); });
  svg.addEventListener("pointermove", event => {
    view.cursor = timeOf(event);
    const bar = event.target.getAttribute("data-bar");
    view.bar = bar === null ? -1 : Number(bar);
    drawCursor(since);
  });
  svg.addEventListener("pointerup", event => {
    const from = Math.min(since, timeOf(event)), to = Math.max(since, timeOf(event));
    if (since !== null && to - from > (view.to - view.from) / 100)
      look(from, to);
    since = null;
    drawCursor(null);
  });
  svg.addEventListener("pointerleave", () => { since = null; drawCursor(null); });
}
document.querySelectorAll("[data-controls]").forEach(place => {
  const button = (text, action) => {
    const made = element("button", {type: "button"}, text);
    made.addEventListener("click", action);
    place.append(made, " ");
  };
  const length = () => view.to - view.from, middle = () => (view.from + view.to) / 2;
  button("whole step", () => look(0, data.end));
  button("closer", () => look(middle() - length() / 4, middle() + length() / 4));
  button("wider", () => look(middle() - length(), middle() + length()));
  button("earlier", () => look(view.from - length() / 2, view.to - length() / 2));
  button("later", () => look(view.from + length() / 2, view.to + length() / 2));
  place.append("or drag over a part of the chart");
});

// ---- memory

const colours = ["#3d5a80", "#6a8caf", "#b0c4d8", "#8d99ae", "#e07a5f", "#f2a65a", "#9bc1a5", "#c9ada7", "#b388c9",
                 "#5fa777", "#d4a5c9", "#e6d38a", "#dddddd"];
const totals = data.curve.map(point => point.slice(1).reduce((sum, bytes) => sum + bytes, 0));
const used = data.kinds.map((name, kind) => kind).filter(kind => data.curve.some(point => point[kind + 1] > 0));
const peakAt = totals.indexOf(Math.max(...totals));
for (const kind of used) {
  const box = element("span"), square = element("i");
  square.style.background = colours[kind];
  box.append(square, word(data.kinds[kind]));
  find("kinds").append(box);
}
// The point of the curve at a time.
function pointAt(time) {
  let low = 0, high = data.curve.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (data.curve[middle][0] <= time)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}
const highest = Math.max(report.arena, ...totals, 1);
const memoryTop = 16, memoryBottom = 296;
const y = bytes => memoryBottom - bytes / highest * (memoryBottom - memoryTop);
function drawMemory() {
  const svg = find("memory");
  svg.replaceChildren();
  let unit = Math.pow(2, Math.ceil(Math.log2(highest / 5)));
  for (let bytes = 0; bytes <= highest; bytes += unit)
    svg.append(shape("line", {x1: left, x2: right, y1: y(bytes), y2: y(bytes), class: "axis"}),
               shape("text", {x: left - 6, y: y(bytes) + 4, "text-anchor": "end", class: "small"}, binary(bytes)));
  ticks(svg, memoryTop, memoryBottom);
  const first = pointAt(view.from), last = pointAt(view.to);
  const below = new Array(last - first + 1).fill(0);
  for (const kind of used) {
    const upper = [], lower = [];
    for (let i = first; i <= last; ++i) {
      const from = x(Math.max(data.curve[i][0], view.from)).toFixed(1);
      const to = x(i < last ? data.curve[i + 1][0] : view.to).toFixed(1);
      const base = y(below[i - first]).toFixed(1);
      below[i - first] += data.curve[i][kind + 1];
      const top = y(below[i - first]).toFixed(1);
      upper.push(`${from},${top} ${to},${top}`);
      lower.push(`${to},${base} ${from},${base}`);
    }
    svg.append(shape("path", {d: "M" + upper.join(" ") + " " + lower.reverse().join(" ") + "Z", fill: colours[kind],
                              "data-kind": data.kinds[kind]}));
  }
  svg.append(shape("line", {x1: left, x2: right, y1: y(report.arena), y2: y(report.arena), stroke: "black",
                            "stroke-dasharray": "6 3"}),
             shape("text", {x: left + 4, y: y(report.arena) - 4, class: "small"},
                   "arena " + binary(report.arena)));
  if (data.end > data.step * 1.001)
    lineOf(svg, data.step, "next step", memoryTop, memoryBottom);
}

const insideUnit = (name, unit) => unit && name.startsWith(unit + ".") ? name.slice(unit.length + 1) : name;
// Buffers of several units that are alike in one row, as in the report.
function listBuffers(where, buffers, rest) {
  const rows = new Map();
  for (const [name, unit, kind, bytes] of buffers) {
    const inside = insideUnit(name, unit);
    const key = JSON.stringify([inside, kind, bytes]);
    const row = rows.get(key) || {inside, name, kind, count: 0, bytes: 0};
    ++row.count;
    row.bytes += bytes;
    rows.set(key, row);
  }
  const sorted = [...rows.values()].sort((one, other) => other.bytes - one.bytes);
  const shown = sorted.slice(0, 10).map(row => [
    row.count > 1 ? `${row.count} × *.${row.inside}` : row.name, word(row.kind), binary(row.bytes)]);
  const left = sorted.slice(10);
  const others = left.reduce((sum, row) => sum + row.bytes, 0) + rest;
  if (others > 0)
    shown.push([`${left.reduce((sum, row) => sum + row.count, 0)} others`, "", binary(others)]);
  table(where, ["buffer", "kind", "#bytes"], shown);
}
function listKinds(where, rows, sum) {
  const shown = rows.filter(([, bytes]) => bytes > 0).map(([name, bytes]) => [word(name), grouped(bytes), binary(bytes)]);
  shown.push(["sum", grouped(sum), binary(sum)]);
  table(where, ["category", "#bytes", "#"], shown, shown.map((row, i) => i + 1 === shown.length));
}
function listAlive() {
  const point = data.curve[pointAt(view.cursor)], total = totals[pointAt(view.cursor)];
  find("cursor-title").textContent = `Alive at ${milliseconds(view.cursor)}, in the predicted order`;
  listKinds("cursor-kinds", used.map(kind => [data.kinds[kind], point[kind + 1]]), total);
  const alive = [];
  let listed = 0;
  for (const [buffer, from, to] of data.lives) {
    if (from > view.cursor || to <= view.cursor)
      continue;
    const [name, unit, kind, bytes] = data.buffers[buffer];
    alive.push([data.names[name], data.names[unit], data.kinds[kind], bytes]);
    listed += bytes;
  }
  // Where lives are left out the curve knows of their bytes.
  listBuffers("cursor-buffers", alive, data.lives_left_out > 0 ? Math.max(total - listed, 0) : 0);
}

const peak = report.peak;
find("peak-place").textContent = peak.launch === "" ? "" :
    `at the start of '${peak.launch}', ${peak.segment}, stream ${peak.stream}`;
listKinds("peak-kinds", data.kinds.map(name => [name, report["peak_" + name]]), peak.bytes);
listBuffers("peak-buffers", peak.buffers.map(buffer => [buffer.name, buffer.unit, buffer.kind, buffer.bytes]), 0);

// ---- timeline

const [NAME, STREAM, START, LENGTH, UNIT, DIRECTION, OP, LAUNCHES, BYTES, FLOPS, ALONE, COLLECTIVE] = [...Array(12).keys()];
const classes = [["forward", "#7fb2e5"], ["backward", "#f0b078"], ["update", "#8fcf9f"], ["all_gather", "#7a5fc0"],
                 ["reduce_scatter", "#b0408e"], ["all_reduce", "#4a3f8f"], ["other collectives", "#8a7fa8"]];
function colourOf(bar) {
  const name = data.names[bar[COLLECTIVE] ? bar[OP] : bar[DIRECTION]];
  return (classes.find(entry => entry[0] === name) || classes[bar[COLLECTIVE] ? 6 : 0])[1];
}
const present = new Set(data.bars.map(colourOf));
for (const [name, colour] of [...classes.filter(entry => present.has(entry[1])),
                              ["exposed: a collective and no kernel", "#d62f3a"]]) {
  const box = element("span"), square = element("i");
  square.style.background = colour;
  box.append(square, word(name));
  find("classes").append(box);
}
const streams = data.streams.map((name, stream) => stream).filter(stream => data.bars.some(bar => bar[STREAM] === stream));
const rowHeight = 40, timelineTop = 18;
const rowOf = new Map(streams.map((stream, row) => [stream, timelineTop + row * rowHeight]));
const exposedRow = timelineTop + streams.length * rowHeight, timelineBottom = exposedRow + 22;
find("timeline").setAttribute("viewBox", `0 0 1060 ${timelineBottom + 22}`);
const barsOf = new Map(streams.map(stream => [stream, []]));
data.bars.forEach((bar, index) => barsOf.get(bar[STREAM]).push(index));
const edgesOf = new Map();
data.edges.forEach(edge => edge.forEach(bar => edgesOf.set(bar, [...(edgesOf.get(bar) || []), edge])));
function arrow([from, to], kind) {
  const one = data.bars[from], other = data.bars[to];
  const down = rowOf.get(one[STREAM]) < rowOf.get(other[STREAM]);
  const x1 = x(one[START] + one[LENGTH]), x2 = x(other[START]);
  const y1 = rowOf.get(one[STREAM]) + (down ? 28 : 4), y2 = rowOf.get(other[STREAM]) + (down ? 4 : 28);
  return shape("path", {class: "arrow" + kind, "marker-end": "url(#tip)",
                        d: `M${x1.toFixed(1)},${y1} C${x1.toFixed(1)},${(y1 + y2) / 2} ${x2.toFixed(1)},${(y1 + y2) / 2} ${x2.toFixed(1)},${y2}`});
}
const isVisible = ([from, to]) =>
    data.bars[from][START] <= view.to && data.bars[to][START] + data.bars[to][LENGTH] >= view.from;
function drawStream(svg, stream, shift, opacity) {
  const top = rowOf.get(stream) + 4;
  let before = null, end = 0, colour = "";
  for (const index of barsOf.get(stream)) {
    const bar = data.bars[index];
    const from = Math.max(x(bar[START] - shift), left), to = Math.min(x(bar[START] + bar[LENGTH] - shift), right);
    if (to < left || from > right || to < from)
      continue;
    // What is narrower than a dot joins its neighbour.
    if (before && colourOf(bar) === colour && to - from < 0.8 && from - end < 0.8) {
      end = Math.max(end, to);
      before.setAttribute("width", Math.max(end - Number(before.getAttribute("x")), 0.5).toFixed(2));
      continue;
    }
    colour = colourOf(bar);
    end = to;
    before = shape("rect", {x: from.toFixed(2), y: top, width: Math.max(to - from, 0.5).toFixed(2), height: 24, fill: colour,
                            "fill-opacity": opacity, "data-bar": index});
    svg.append(before);
    if (to - from > 44) {
      const unit = data.names[bar[UNIT]], name = data.names[bar[NAME]];
      const text = bar[LAUNCHES] > 1 ? `${unit || name} (${bar[LAUNCHES]})` : insideUnit(name, unit);
      svg.append(shape("text", {x: from + 4, y: top + 16, class: "small", "pointer-events": "none",
                                fill: "black"}, text.slice(0, Math.floor((to - from) / 6.6))));
    }
  }
}
// The part of each column of dots that is exposed, as its opacity.
function drawExposed(svg) {
  const part = new Array(width).fill(0);
  for (const [from, to] of data.exposed) {
    const begin = Math.max(x(from) - left, 0), end = Math.min(x(to) - left, width);
    for (let at = Math.floor(begin); at < end; ++at)
      part[at] += Math.min(end, at + 1) - Math.max(begin, at);
  }
  const level = at => Math.min(Math.ceil(part[at] * 8 - 1e-6), 8) / 8;
  for (let at = 0, next = 0; at < width; at = next) {
    for (next = at + 1; next < width && level(next) === level(at);)
      ++next;
    if (level(at) === 0)
      continue;
    const place = {x: left + at, width: next - at, class: "exposed"};
    svg.append(shape("rect", {...place, y: exposedRow + 4, height: 14, "fill-opacity": level(at)}),
               shape("rect", {...place, y: timelineTop, height: exposedRow - timelineTop, "fill-opacity": 0.12 * level(at),
                              "pointer-events": "none"}));
  }
}
function drawTimeline() {
  const svg = find("timeline");
  svg.replaceChildren();
  const defs = shape("defs"), tip = shape("marker", {id: "tip", viewBox: "0 0 6 6", refX: 5, refY: 3, markerWidth: 5,
                                                     markerHeight: 5, orient: "auto"});
  tip.append(shape("path", {d: "M0,0 L6,3 L0,6 Z", fill: "#444"}));
  defs.append(tip);
  svg.append(defs);
  ticks(svg, timelineTop, timelineBottom);
  for (const stream of streams) {
    svg.append(shape("text", {x: left - 6, y: rowOf.get(stream) + 21, "text-anchor": "end", class: "small"}, data.streams[stream]));
    // Beyond the step: beside the next one, and so beside this one those of the step before.
    if (data.end > data.step)
      drawStream(svg, stream, data.step, 0.4);
    drawStream(svg, stream, 0, 1);
  }
  svg.append(shape("text", {x: left - 6, y: exposedRow + 14, "text-anchor": "end", class: "small"}, "exposed"));
  drawExposed(svg);
  const visible = data.edges.filter(isVisible);
  if (visible.length <= 200)
    visible.filter(([from, to]) => data.bars[from][START] + data.bars[from][LENGTH] >= view.from && data.bars[to][START] <= view.to)
        .forEach(edge => svg.append(arrow(edge, "")));
  if (data.end > data.step * 1.001)
    lineOf(svg, data.step, "next step", timelineTop - 12, timelineBottom);
}
function describeBar() {
  const bar = data.bars[view.bar];
  if (!bar) {
    find("launch").textContent = data.edges.length + " waits between streams; those of a launch are marked under the cursor." +
        (data.bars.some(one => one[LAUNCHES] > 1) ? " Neighbouring launches of a unit are one bar." : "");
    return;
  }
  const waits = (edgesOf.get(view.bar) || []).filter(edge => edge[1] === view.bar).map(edge => data.names[data.bars[edge[0]][NAME]]);
  find("launch").textContent = [
    data.names[bar[NAME]] + (bar[LAUNCHES] > 1 ? ` and ${bar[LAUNCHES] - 1} more launches` : ""),
    data.names[bar[OP]], data.names[bar[UNIT]] && "unit " + data.names[bar[UNIT]], data.names[bar[DIRECTION]],
    `${milliseconds(bar[LENGTH])} from ${milliseconds(bar[START])}, alone ${milliseconds(bar[ALONE])}`,
    binary(bar[BYTES]) + " of the arena", bar[FLOPS] > 0 && significant(bar[FLOPS] / 1e9) + " GFLOP",
    waits.length > 0 && "waits for " + waits.slice(0, 6).join(", ")].filter(Boolean).join("; ");
}

function drawCursor(since) {
  for (const [id, top, bottom] of [["memory", memoryTop, memoryBottom], ["timeline", timelineTop, timelineBottom]]) {
    const svg = find(id);
    svg.querySelectorAll(".cursor, .chosen, .arrow.marked").forEach(old => old.remove());
    svg.querySelectorAll(".marked").forEach(old => old.classList.remove("marked"));
    if (view.cursor >= view.from && view.cursor <= view.to)
      svg.append(shape("line", {x1: x(view.cursor), x2: x(view.cursor), y1: top, y2: bottom, class: "cursor"}));
    if (since !== null)
      svg.append(shape("rect", {x: Math.min(x(since), x(view.cursor)), width: Math.abs(x(since) - x(view.cursor)), y: top,
                                height: bottom - top, class: "chosen"}));
  }
  const marked = find("timeline").querySelector(`rect[data-bar="${view.bar}"]`);
  if (marked) {
    marked.classList.add("marked");
    for (const edge of edgesOf.get(view.bar) || [])
      find("timeline").append(arrow(edge, " marked"));
  }
  describeBar();
  listAlive();
}
table("streams", ["stream", "#busy", "#of the step", "#exposed"], report.predicted_streams.map(stream => [
  stream.stream, significant(stream.busy_ms) + " ms", percent(stream.busy_ms / report.predicted_step_ms),
  significant(stream.exposed_ms) + " ms"]));

// ---- collectives

{
  const rows = [], sums = [], groups = new Map();
  for (const call of report.predicted_collectives) {
    const key = JSON.stringify([call.axes, call.kind]);
    groups.set(key, [...(groups.get(key) || []), call]);
  }
  const cells = (axes, kind, count, each, calls) => {
    const sum = of => calls.reduce((all, call) => all + call.count * of(call), 0);
    const total = sum(call => call.ms), share = sum(call => call.bus_bytes / call.link_bytes_per_s * 1e3) / total;
    const bar = element("span", {class: "share"}), box = element("span");
    bar.style.width = Math.round(60 * share) + "px";
    box.append(bar, percent(share));
    const only = calls.length === 1 ? calls[0] : null;
    return [axes, kind, grouped(count), each, binary(sum(call => call.bytes)), only ? significant(only.ms) + " ms" : "",
            significant(total) + " ms", percent(total / report.predicted_step_ms), only ? only.algorithm : "",
            only ? significant(only.bus_bytes / only.ms / 1e6) + " of " + significant(only.link_bytes_per_s / 1e9) : "", box];
  };
  for (const calls of groups.values()) {
    const [axes, kind] = [calls[0].axes.join(", "), word(calls[0].kind)];
    for (const call of calls) {
      rows.push(cells(axes, kind, call.count, grouped(call.bytes), [call]));
      sums.push(false);
    }
    if (calls.length > 1) {
      rows.push(cells(axes, kind, calls.reduce((all, call) => all + call.count, 0), "all", calls));
      sums.push(true);
    }
  }
  table("collectives", ["over", "kind", "#calls", "#bytes of a call", "#of all", "#a call alone", "#all calls", "#of the step",
                        "algorithm", "#GB/s", "share of the link"], rows, sums);
  if (rows.length === 0)
    find("collectives").replaceWith(element("p", {}, "none"));
}

// ---- stored shards

for (const storage of data.storages) {
  const figure = element("figure"), svg = shape("svg", {viewBox: "0 0 1060 74", width: 1060});
  const parts = storage.kind === "replicated" ? 1 : storage.parts;
  const whole = parts * storage.shard_elements, scale = 1040 / whole;
  storage.members.forEach(([name, offset, type, elements], i) => {
    const next = storage.members[i + 1], to = next ? next[1] : Math.min(offset + elements, whole);
    const from = 10 + offset * scale, length = (to - offset) * scale;
    const box = shape("rect", {x: from, y: 6, width: Math.max(length, 0.5), height: 26, stroke: "white",
                               fill: ["#a9c6e8", "#cfe0c3", "#f1d6a8", "#e2c4de"][i % 4]});
    box.append(shape("title", {}, `${name} : ${type}`));
    svg.append(box);
    if (length > 50)
      svg.append(shape("text", {x: from + 4, y: 23, class: "small", "pointer-events": "none"}, name.slice(0, Math.floor(length / 6.6))));
  });
  for (let part = 0; parts <= 64 && part <= parts; ++part) {
    const at = 10 + part * storage.shard_elements * scale;
    svg.append(shape("line", {x1: at, x2: at, y1: 4, y2: 52, stroke: "black"}));
    if (part < parts && parts <= 16)
      svg.append(shape("text", {x: at + 520 / parts, y: 48, "text-anchor": "middle", class: "small"}, parts === 1 ? "every rank" : `part ${part}`));
  }
  if (parts > 64)
    svg.append(shape("text", {x: 10, y: 48, class: "small"}, `${parts} equal parts`));
  const units = storage.units.length > 3 ? [storage.units[0], "…", storage.units.at(-1), `(${storage.units.length} units)`] : storage.units;
  const how = storage.kind === "dimension" ? `split along dimension ${storage.dim}` : word(storage.kind);
  figure.append(svg, element("figcaption", {}, [
    units.join(" "), how + (storage.axes.length > 0 && parts > 1 ? " over " + storage.axes.join(", ") : ""),
    `${storage.shard}, ${grouped(storage.shard_bytes)} bytes on a rank`,
    storage.states.length > 0 && `and as much for each of ${storage.states.join(", ")}`].filter(Boolean).join("; ")));
  find("storages").append(figure);
}

drawers.push(drawMemory, drawTimeline, () => drawCursor(null));
follow(find("memory"));
follow(find("timeline"));
view.cursor = data.curve.length > 0 ? data.curve[peakAt][0] : 0;
draw();
document.documentElement.setAttribute("data-ready", "1"); // for tests: all of it is drawn
})();
