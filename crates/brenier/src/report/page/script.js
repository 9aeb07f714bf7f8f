"use strict";
(() => {
  const report = JSON.parse(document.getElementById("data").textContent);
  const [channels, height, width] = report.shape.length === 3 ? report.shape : [0, 0, 0];
  const images = channels === 1 || channels === 3;

  // Elements; text is always text.
  const make = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    for (const child of children) element.append(child);
    return element;
  };
  const draw = (name, attributes = {}, text) => {
    const element = document.createElementNS("http" + "://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const unpack = ({ low, high, bytes, data }) => {
    const raw = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
    const steps = bytes === 1 ? raw : new Uint16Array(raw.buffer);
    const scale = (high - low) / (bytes === 1 ? 255 : 65535);
    return Float64Array.from(steps, (step) => low + step * scale);
  };
  const short = (value) => {
    if (value === null || value === undefined) return "-";
    if (typeof value !== "number") return String(value);
    if (value === 0) return "0";
    const size = Math.abs(value);
    return size >= 1e-3 && size < 1e5 ? String(Number(value.toPrecision(4))) : value.toExponential(2);
  };
  const className = (target) => (report.classes[target] === undefined ? `output ${target}` : report.classes[target]);

  // Pictures.
  const canvas = (label) => make("canvas", { width, height, role: "img", "aria-label": label });
  const paint = (target, colour) => {
    const context = target.getContext("2d");
    const pixels = context.createImageData(width, height);
    for (let i = 0; i < width * height; i++) {
      const [r, g, b] = colour(i);
      pixels.data.set([r, g, b, 255], 4 * i);
    }
    context.putImageData(pixels, 0, 0);
  };
  const paintState = (target, state, [low, high], offset = 0) => {
    const area = width * height;
    const shade = (v) => (255 * (v - low)) / (high - low);
    paint(target, (i) => [0, 1, 2].map((c) => shade(state[offset + Math.min(c, channels - 1) * area + i])));
  };
  // Blue for credit against, red for credit for the score, white for none.
  const diverging = (v) => {
    const t = Math.min(1, Math.abs(v));
    const end = v > 0 ? [178, 24, 43] : [33, 102, 172];
    return end.map((c) => 255 + (c - 255) * Math.pow(t, 0.8));
  };
  const summed = (values, offset = 0) => {
    const area = width * height;
    const sums = new Float64Array(area);
    for (let c = 0; c < channels; c++) for (let i = 0; i < area; i++) sums[i] += values[offset + c * area + i];
    return sums;
  };
  const largest = (values) => values.reduce((most, v) => Math.max(most, Math.abs(v)), 0);
  const paintCredit = (target, sums, scale) => paint(target, (i) => diverging(scale > 0 ? sums[i] / scale : 0));

  // Credit by pixels or summed over superpixels, each map on its own scale or on one: the page's two switches.
  const view = { superpixels: report.by_superpixels, shared: report.shared_scale };
  const redrawn = [];
  // The 99.5th percentile of sizes: beyond it the colour stays full.
  const fullColour = (parts) => {
    const sizes = [...parts].map(Math.abs).sort((a, b) => a - b);
    return sizes[Math.ceil(0.995 * sizes.length) - 1] || sizes[sizes.length - 1] || 0;
  };
  const labelsOf = (example) => {
    if (example.superpixels && !example.labels) example.labels = unpack(example.superpixels).map(Math.round);
    return example.labels;
  };
  const bySuperpixels = (labels, sums) => {
    const parts = new Float64Array(labels.reduce((most, label) => Math.max(most, label), 0) + 1);
    labels.forEach((label, i) => (parts[label] += sums[i]));
    return { parts, pixels: labels.map((label) => parts[label]) };
  };
  const complete = (method) => typeof method.certificate.credit_sum === "number";
  // A map of credit with its colour bar, drawn anew at every switch.
  const creditMap = (example, values, method, label) => {
    const [picture, bar] = [canvas(label), make("div")];
    const update = () => {
      const labels = view.superpixels ? labelsOf(example) : null;
      const sums = summed(values);
      let [pixels, scale] = [sums, view.shared ? method.shared_scale : method.scale];
      if (labels) {
        const own = bySuperpixels(labels, sums);
        pixels = own.pixels;
        const sharing = view.shared && complete(method) ? example.methods.filter(complete) : [];
        scale = Math.max(fullColour(own.parts), ...sharing.map((other) => fullColour(bySuperpixels(labels, summed(unpack(other.values))).parts)));
      }
      paintCredit(picture, pixels, scale);
      bar.replaceChildren(colourBar(scale));
    };
    redrawn.push(update);
    update();
    return { picture, bar };
  };
  const switches = () => {
    const one = (key, text) => {
      const box = make("input", { type: "checkbox", ...(view[key] ? { checked: "" } : {}) });
      box.addEventListener("change", () => { view[key] = box.checked; redrawn.forEach((update) => update()); });
      return make("label", {}, box, text);
    };
    const said = make("p", {}, "Red speaks for the score, blue against it. Full colour begins at the 99.5th percentile of a map's credit.");
    const boxes = [one("superpixels", "credit summed over superpixels"), one("shared", "one scale for methods that sum to the score's change")];
    return make("fieldset", { class: "targets switches" }, make("legend", {}, "maps"), ...boxes, said);
  };

  // Which colour is how much.
  const colourBar = (scale) => make("span", { class: "bar" }, make("span", {}, `-${short(scale)}`), make("span", {}, "0"), make("span", {}, short(scale)));

  const verdict = (certificate) => {
    const { kind, reasons = [] } = certificate.verdict;
    const words = { "not-calibrated": "not calibrated", "no-check": "no check applies" };
    const word = make("span", { class: `verdict ${kind}` }, words[kind] ?? kind);
    // The parts that say something, each in a word.
    const parts = Object.entries(certificate.checks ?? {}).filter(([, part]) => part.kind !== "not-applicable");
    if (parts.length > 0) word.title = parts.map(([name, part]) => `${name}: ${words[part.kind] ?? part.kind}`).join("\n");
    return reasons.length === 0 ? [word] : [word, make("p", { class: "reasons" }, reasons.join("; "))];
  };
  const facts = (certificate) => {
    const list = make("dl");
    const flat = (object, before) => {
      for (const [key, value] of Object.entries(object)) {
        if (value === null || key === "verdict" || key === "checks") continue;
        const name = before + key.replaceAll("_", " ");
        if (typeof value === "object" && !Array.isArray(value)) flat(value, `${name}: `);
        else list.append(make("dt", {}, name), make("dd", {}, Array.isArray(value) ? value.join(", ") : short(value)));
      }
    };
    flat(certificate, "");
    return make("details", {}, make("summary", {}, "certificate"), list);
  };

  // Bars with error bars, largest first.
  const largestFirst = (values) => [...values.keys()].sort((a, b) => Math.abs(values[b]) - Math.abs(values[a])).slice(0, 20);
  const bars = (values, errors, input, label, order = largestFirst(values), scale = 0, levels = [], names = report.features) => {
    const most = Math.max(...order.map((i) => Math.abs(values[i]) + (errors ? errors[i] : 0)), scale, 1e-300);
    const line = 22;
    const svg = draw("svg", { viewBox: `0 0 460 ${line * order.length + 8}`, width: 460, class: "bars", role: "img" });
    svg.append(draw("title", {}, label));
    order.forEach((feature, row) => {
      const y = row * line + 4;
      const size = (v) => (120 * v) / most;
      const name = names[feature] === undefined ? `feature ${feature}` : names[feature];
      const text = `${name} = ${levels[feature] || short(input[feature])}`;
      svg.append(draw("text", { x: 0, y: y + 14 }, text.length > 26 ? `${text.slice(0, 25)}…` : text));
      const width = Math.abs(size(values[feature]));
      const left = values[feature] < 0 ? 310 - width : 310;
      const fill = values[feature] < 0 ? "rgb(33,102,172)" : "rgb(178,24,43)";
      svg.append(draw("rect", { x: left, y, width, height: line - 6, fill }));
      if (errors) {
        const end = 310 + size(values[feature]);
        const reach = size(errors[feature]);
        svg.append(draw("line", { x1: end - reach, x2: end + reach, y1: y + 8, y2: y + 8, stroke: "currentColor" }));
      }
      svg.append(draw("text", { x: 310, y: y + 13, dx: values[feature] < 0 ? 6 : -6, "text-anchor": values[feature] < 0 ? "start" : "end" }, short(values[feature])));
    });
    return svg;
  };

  // Stills of large images have half the pixels of the picture each way.
  const grown = (frames, small, share) => {
    if (!frames.half) return small;
    const [rows, columns] = [Math.ceil(height / 2), Math.ceil(width / 2)];
    const planes = frames.times.length * channels;
    const whole = new Float64Array(planes * height * width);
    for (let p = 0; p < planes; p++) for (let i = 0; i < height; i++) for (let j = 0; j < width; j++) {
      whole[(p * height + i) * width + j] = small[(p * rows + (i >> 1)) * columns + (j >> 1)] / share;
    }
    return whole;
  };

  // The score along a path, with a mark that moves.
  const curve = (frames) => {
    const [low, high] = [Math.min(...frames.scores), Math.max(...frames.scores)];
    const x = (t) => 72 + 280 * t;
    const y = (s) => 110 - (high > low ? (100 * (s - low)) / (high - low) : 50);
    const svg = draw("svg", { viewBox: "0 0 360 136", width: 360, role: "img" });
    svg.append(draw("title", {}, "score along the path"));
    svg.append(draw("polyline", {
      points: frames.times.map((t, k) => `${x(t)},${y(frames.scores[k])}`).join(" "),
      fill: "none", stroke: "var(--accent)", "stroke-width": 2,
    }));
    for (const [at, text] of [[low, short(low)], [high, short(high)]]) {
      svg.append(draw("text", { x: 64, y: y(at) + 4, "text-anchor": "end", "font-size": 11, fill: "currentColor" }, text));
    }
    svg.append(draw("text", { x: 72, y: 130, "font-size": 11, fill: "currentColor" }, "reference"));
    svg.append(draw("text", { x: 352, y: 130, "text-anchor": "end", "font-size": 11, fill: "currentColor" }, "input"));
    const mark = draw("circle", { r: 5, fill: "var(--accent)" });
    svg.append(mark);
    return { svg, move: (k) => { mark.setAttribute("cx", x(frames.times[k])); mark.setAttribute("cy", y(frames.scores[k])); } };
  };

  const scrubber = (method, features, range) => {
    const frames = method.frames;
    const last = frames.times.length - 1;
    const name = method.certificate.method;
    const slider = make("input", { type: "range", min: 0, max: last, step: 1, value: last, "aria-label": `time along the path of ${name}` });
    const numbers = make("p", { class: "numbers", "aria-live": "polite" });
    const { svg, move } = curve(frames);
    const [states, credit] = [grown(frames, unpack(frames.states), 1), grown(frames, unpack(frames.credit), 4)];
    const row = make("div", { class: "row" });
    let show = () => {};
    if (images) {
      const [state, sofar] = [canvas("state of the path"), canvas("credit so far")];
      const scale = largest(summed(credit, last * features));
      show = (k) => { paintState(state, states, range, k * features); paintCredit(sofar, summed(credit, k * features), scale); };
      row.append(make("figure", {}, state, make("figcaption", {}, "state")), make("figure", {}, sofar, make("figcaption", {}, "credit so far")));
    } else {
      const figure = make("figure");
      const at = (array, k) => array.slice(k * features, (k + 1) * features);
      const order = largestFirst(at(credit, last));
      const scale = largest(credit);
      const caption = make("figcaption", {}, "state, and credit so far");
      show = (k) => figure.replaceChildren(bars(at(credit, k), null, at(states, k), "credit so far", order, scale), caption);
      row.append(figure);
    }
    row.append(make("figure", {}, svg, make("figcaption", {}, "score along the path")));
    const update = () => {
      const k = Number(slider.value);
      show(k);
      move(k);
      numbers.textContent = `time ${frames.times[k].toFixed(2)}: score ${short(frames.scores[k])}, credit so far about ${short(frames.sums[k])}`;
    };
    slider.addEventListener("input", update);
    update();
    return make("div", { class: "path" }, make("h3", {}, `Along the path: ${name}`), slider, numbers, row);
  };

  // Why this and not that: the input beside its counterpart in the population that it is compared with.
  const counterpartTable = (input, reference, credit, [described, counterpart]) => {
    // Numbers come in steps of their range: what is below one is none.
    const least = largest(credit) / 30000;
    const said = (texts, values, feature) => texts[feature] || short(values[feature]);
    const rows = largestFirst(credit).slice(0, 10).map((feature) => {
      const name = report.features[feature] === undefined ? `feature ${feature}` : report.features[feature];
      const own = Math.abs(credit[feature]) < least ? 0 : credit[feature];
      return make("tr", {}, ...[name, said(described, input, feature), said(counterpart, reference, feature), short(own)].map((text) => make("td", {}, text)));
    });
    const heads = ["", "input", "counterpart", "credit"].map((text) => make("th", { scope: "col" }, text));
    return make("table", { class: "counterpart" }, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows));
  };
  const comparison = (example, input, credit, method) => {
    const { comparison: found, score, reference_score: from } = method.certificate;
    const card = make("section", { class: "comparison" }, make("h3", {}, `Compared with '${found.against}': ${method.certificate.method}`));
    const words = [`Of '${found.against}', this is the one that the input would most easily have been (${found.way}).`];
    if (found.reference_class !== null) words.push(`The model takes it for '${found.reference_class}'.`);
    words.push(`From there to the input the score goes from ${short(from)} to ${short(score)}; between the two populations it typically differs by ${short(found.typical_change)}.`);
    if (found.moved_features !== null) words.push(`Nine tenths of the way lie in ${found.moved_features} of ${input.length} features.`);
    card.append(make("p", {}, words.join(" ")), make("p", {}, ...verdict(method.certificate)));
    const reference = unpack(method.reference);
    const row = make("div", { class: "row" });
    let map;
    if (images) {
      const difference = summed(input.map((v, i) => v - reference[i]));
      const pictures = [
        ["counterpart", (target) => paintState(target, reference, example.range)],
        ["input", (target) => paintState(target, input, example.range)],
        ["difference", (target) => paintCredit(target, difference, largest(difference))],
      ];
      for (const [name, fill] of pictures) {
        const picture = canvas(name);
        fill(picture);
        row.append(make("figure", {}, picture, make("figcaption", {}, name === "counterpart" ? `counterpart in '${found.against}'` : name)));
      }
      map = creditMap(example, credit, method, "credit");
      row.append(make("figure", {}, map.picture, make("figcaption", {}, "credit")));
    } else {
      row.append(make("figure", {}, counterpartTable(input, reference, credit, [example.described, method.counterpart])));
    }
    if (method.frames) {
      const { svg, move } = curve(method.frames);
      move(method.frames.times.length - 1);
      row.append(make("figure", {}, svg, make("figcaption", {}, "score from the counterpart to the input")));
    }
    card.append(row);
    // The map is not shown a second time below, so what stands beside a map stands here.
    if (images) card.append(make("div", {}, map.bar, facts(method.certificate)));
    return card;
  };

  // Several inputs, each in its own way: images as heat maps, embedded ids as coloured tokens, numbers as bars.
  const scaled = (shape, label, fill) => {
    const [, rows, columns] = shape;
    const target = make("canvas", { width: columns, height: rows, role: "img", "aria-label": label });
    const context = target.getContext("2d");
    const pixels = context.createImageData(columns, rows);
    for (let i = 0; i < rows * columns; i++) pixels.data.set([...fill(i), 255], 4 * i);
    context.putImageData(pixels, 0, 0);
    return target;
  };
  const ownWay = (one, values, input, errors, { method, example, text }) => {
    const cut = (all) => (all ? all.slice(one.range.start, one.range.end) : null);
    const [credit, state] = [cut(values), cut(input)];
    const total = credit.reduce((sum, v) => sum + v, 0);
    const caption = make("figcaption", {}, make("strong", {}, one.embeds ?? one.name), ` ${short(total)} in all`);
    const [first, rows, columns] = one.shape;
    if (one.shape.length === 3 && (first === 1 || first === 3)) {
      const area = rows * columns;
      const sums = Float64Array.from({ length: area }, (_, i) => [...Array(first).keys()].reduce((sum, c) => sum + credit[c * area + i], 0));
      const [low, high] = [Math.min(...state), Math.max(...state)];
      const shade = (v) => (255 * (v - low)) / (high - low || 1);
      const picture = scaled(one.shape, one.name, (i) => [0, 1, 2].map((c) => shade(state[Math.min(c, first - 1) * area + i])));
      const most = largest(sums);
      const map = scaled(one.shape, `credit of ${one.name} by ${method}`, (i) => diverging(most > 0 ? sums[i] / most : 0));
      return [make("figure", {}, picture, make("figcaption", {}, one.name)), make("figure", {}, map, make("div", {}, colourBar(most)), caption)];
    }
    if (one.embeds) {
      const size = one.shape[one.shape.length - 1];
      const tokens = Float64Array.from({ length: credit.length / size }, (_, t) => credit.slice(t * size, (t + 1) * size).reduce((sum, v) => sum + v, 0));
      const names = text?.input === one.embeds ? text.tokens : report.tokens[one.embeds]?.[example] ?? [];
      // Pieces of one word are one to a reader; its credit is their sum.
      const words = text?.input === one.embeds ? text.words : [...tokens].map((_, t) => ({ text: names[t] ?? `${t}`, first: t, end: t + 1 }));
      const sums = words.map(({ first, end }) => tokens.slice(first, end).reduce((sum, v) => sum + v, 0));
      const most = largest(sums);
      const spans = words.map((word, w) => {
        const [r, g, b] = diverging(most > 0 ? sums[w] / most : 0).map(Math.round);
        const pieces = [...tokens.slice(word.first, word.end)].map((v, t) => `${names[word.first + t] ?? ""} ${short(v)}`).join(", ");
        const title = word.end - word.first > 1 ? `${short(sums[w])}: ${pieces}` : short(sums[w]);
        // Dark colours have light letters.
        const ink = 0.299 * r + 0.587 * g + 0.114 * b < 130 ? "#fff" : "#111";
        return make("span", { class: word.special ? "token special" : "token", style: `background: rgb(${r},${g},${b}); color: ${ink}`, title }, word.text);
      });
      return [make("figure", {}, make("p", { class: "tokens" }, ...spans), make("div", {}, colourBar(most)), caption)];
    }
    const names = one.range.end - one.range.start === 1 ? [one.name] : [...credit.keys()].map((i) => `${one.name}[${i}]`);
    return [make("figure", {}, bars(credit, cut(errors), state, `credit of ${one.name}`, undefined, 0, [], names), caption)];
  };
  const severalInputs = (input, method, values) => {
    const errors = method.errors ? unpack(method.errors) : null;
    const explained = report.inputs.inputs.filter((one) => one.role === "explained");
    const held = report.inputs.inputs.filter((one) => one.role === "held").map((one) => one.name);
    const figures = explained.flatMap((one) => ownWay(one, values, input, errors, method.certificate));
    const words = held.length > 0 ? [make("p", {}, `Held as they are, without credit: ${held.join(", ")}.`)] : [];
    const about = make("p", {}, make("strong", {}, method.certificate.method), " ", ...verdict(method.certificate));
    return make("section", { class: "inputs" }, about, make("div", { class: "row" }, ...figures), ...words, facts(method.certificate));
  };

  // What all methods say of one target.
  const part = (example, input, methods) => {
    const maps = methods.map((method) => unpack(method.values));
    const { target, score } = methods[0].certificate;
    const heading = make("h2", {}, `${example.name}: ${className(target)}, score ${short(score)}`);
    const row = make("div", { class: "row" });
    if (images) {
      const picture = canvas("input");
      paintState(picture, input, example.range);
      row.append(make("figure", {}, picture, make("figcaption", {}, "input")));
    }
    if (report.inputs) return make("div", { class: "part" }, heading, ...methods.map((method, i) => severalInputs(input, method, maps[i])));
    const hasCard = (method) => method.certificate.comparison && method.reference;
    methods.forEach((method, i) => {
      if (images && hasCard(method)) return;
      const map = images ? creditMap(example, maps[i], method, `credit by ${method.certificate.method}`) : null;
      const caption = make("figcaption", {}, ...(map ? [map.bar] : []), make("strong", {}, method.certificate.method), " ", ...verdict(method.certificate), facts(method.certificate));
      if (map) {
        row.append(make("figure", {}, map.picture, caption));
      } else {
        const errors = method.errors ? unpack(method.errors) : null;
        row.append(make("figure", {}, bars(maps[i], errors, input, method.certificate.method, undefined, 0, example.levels), caption));
      }
    });
    const whole = make("div", { class: "part" }, heading);
    methods.forEach((method, i) => {
      if (hasCard(method)) whole.append(comparison(example, input, maps[i], method));
    });
    if (!images || !methods.every(hasCard)) whole.append(row);
    for (const method of methods) if (method.frames) whole.append(scrubber(method, input.length, example.range));
    return whole;
  };

  const article = (example, number) => {
    const input = unpack(example.input);
    const targets = [...new Set(example.methods.map((method) => method.certificate.target))];
    const parts = targets.map((target) => part(example, input, example.methods.filter((method) => method.certificate.target === target)));
    const whole = make("article", { id: `example-${number}` });
    const show = (chosen) => parts.forEach((one, i) => (one.hidden = i !== chosen));
    if (targets.length > 1) {
      const choices = targets.map((target, i) => {
        const button = make("input", { type: "radio", name: `target-${number}`, ...(i === 0 ? { checked: "" } : {}) });
        button.addEventListener("change", () => show(i));
        return make("label", {}, button, className(target));
      });
      whole.append(make("fieldset", { class: "targets" }, make("legend", {}, "explained score"), ...choices));
      show(0);
    }
    whole.append(...parts);
    return whole;
  };

  const sortable = ({ columns, rows, notes }) => {
    const table = document.querySelector("#metrics table");
    const body = make("tbody");
    let [by, upward] = [-1, true];
    const fill = () => {
      const key = (row) => (by === 0 ? row[0] : row[1][by - 1]);
      const sorted = by < 0 ? rows : [...rows].sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        if (x === null || y === null) return (x === null) - (y === null);
        return (x < y ? -1 : x > y ? 1 : 0) * (upward ? 1 : -1);
      });
      body.replaceChildren(...sorted.map(([name, values]) => make("tr", {}, make("td", {}, name), ...values.map((v) => make("td", {}, short(v))))));
    };
    const heads = columns.map((name, column) => {
      const button = make("button", { type: "button" }, name);
      const head = make("th", { scope: "col" }, button);
      button.addEventListener("click", () => {
        [by, upward] = [column, by === column ? !upward : true];
        heads.forEach((h) => h.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", upward ? "ascending" : "descending");
        fill();
      });
      return head;
    });
    table.append(make("thead", {}, make("tr", {}, ...heads)), body);
    fill();
    if (notes.length) table.parentElement.after(make("ul", { class: "notes" }, ...notes.map((note) => make("li", {}, note))));
    document.getElementById("metrics").hidden = false;
  };

  document.getElementById("title").textContent = report.title;
  if (images && !report.inputs && report.examples.length) document.querySelector("header").append(switches());
  for (const [name, value] of report.facts) document.getElementById("facts").append(make("dt", {}, name), make("dd", {}, value));
  report.examples.forEach((example, number) => {
    document.getElementById("examples").append(article(example, number));
    document.getElementById("index").append(make("li", {}, make("a", { href: `#example-${number}` }, example.name)));
  });
  if (report.metrics) sortable(report.metrics);
})();
