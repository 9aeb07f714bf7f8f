// Runs an exported explainer on a few images and paints what it says. `explainer.onnx` is made by
//   brenier export -m assets/fashion-mnist/classifier.onnx --method ig --steps 50 -o docs/browser/explainer.onnx
import * as ort from "./node_modules/onnxruntime-web/dist/ort.wasm.bundle.min.mjs";

const CLASSES = ["T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"];
const SIDE = 28;
const PIXELS = SIDE * SIDE;
// Of the pixels, this share is within the scale of colours: a few large ones would leave all others white.
const WITHIN = 0.99;

// More threads need headers that a plain file server does not send.
ort.env.wasm.numThreads = 1;

const at = (id) => document.getElementById(id);

function paint(canvas, colour) {
  const context = canvas.getContext("2d");
  const picture = context.createImageData(SIDE, SIDE);
  for (let i = 0; i < PIXELS; i++) {
    const [r, g, b] = colour(i);
    picture.data.set([r, g, b, 255], 4 * i);
  }
  context.putImageData(picture, 0, 0);
}

// From blue (-1) over white to red (1).
function diverging(share) {
  const [r, g, b] = share < 0 ? [33, 102, 172] : [178, 24, 43];
  const size = Math.min(1, Math.abs(share));
  return [r, g, b].map((end) => Math.round(255 + size * (end - 255)));
}

function paintCredit(canvas, credit) {
  const sizes = Array.from(credit, Math.abs).sort((a, b) => a - b);
  const most = sizes[Math.floor(WITHIN * (sizes.length - 1))] || 1;
  paint(canvas, (i) => diverging(credit[i] / most));
}

function showScores(scores, explained) {
  const highest = Math.max(...scores);
  const shares = scores.map((score) => Math.exp(score - highest));
  const sum = shares.reduce((a, b) => a + b, 0);
  const rows = CLASSES.map((name, k) => {
    const row = document.createElement("div");
    row.className = k === explained ? "row explained" : "row";
    const cells = [document.createElement("span"), document.createElement("span"), document.createElement("span")];
    cells[0].textContent = name;
    cells[1].className = "bar";
    const bar = document.createElement("i");
    bar.style.width = `${(100 * shares[k]) / sum}%`;
    cells[1].append(bar);
    cells[2].textContent = scores[k].toFixed(2);
    row.append(...cells);
    return row;
  });
  at("scores").replaceChildren(...rows);
}

async function explain(session, pixels) {
  const input = new ort.Tensor("float32", Float32Array.from(pixels, (p) => p / 255), [1, 1, SIDE, SIDE]);
  const begun = performance.now();
  const found = await session.run({ [session.inputNames[0]]: input });
  const milliseconds = performance.now() - begun;
  const explained = Number(found.explained.data[0]);
  return {
    scores: Array.from(found.scores.data),
    credit: Array.from(found.credit.data),
    residual: found.residual.data[0],
    explained,
    milliseconds,
  };
}

function show(pixels, answer) {
  paint(at("input"), (i) => [pixels[i], pixels[i], pixels[i]]);
  paintCredit(at("credit"), answer.credit);
  showScores(answer.scores, answer.explained);
  const sum = answer.credit.reduce((a, b) => a + b, 0);
  at("facts").textContent =
    `Credit sums to ${sum.toFixed(3)}; the score changed by ${(sum - answer.residual).toFixed(3)} from a black image. ` +
    `${answer.milliseconds.toFixed(0)} ms.`;
}

async function load(name) {
  const answer = await fetch(name);
  if (!answer.ok) throw new Error(`${name} is not there (${answer.status}): see docs/export.md for how to make it`);
  return new Uint8Array(await answer.arrayBuffer());
}

try {
  const [model, images] = [await load("explainer.onnx"), await load("images.bin")];
  const session = await ort.InferenceSession.create(model, { executionProviders: ["wasm"] });
  const buttons = [];
  const choose = async (k) => {
    const pixels = images.subarray(k * PIXELS, (k + 1) * PIXELS);
    buttons.forEach((button, other) => button.setAttribute("aria-pressed", String(other === k)));
    const answer = await explain(session, pixels);
    show(pixels, answer);
    // For tests, and for the curious in the console.
    globalThis.answer = { image: k, ...answer };
  };
  for (let k = 0; k < images.length / PIXELS; k++) {
    const [button, picture] = [document.createElement("button"), document.createElement("canvas")];
    picture.width = picture.height = SIDE;
    paint(picture, (i) => Array(3).fill(images[k * PIXELS + i]));
    button.setAttribute("aria-label", `image ${k + 1}`);
    button.append(picture);
    button.addEventListener("click", () => choose(k));
    buttons.push(button);
  }
  at("images").replaceChildren(...buttons);
  await choose(0);
} catch (error) {
  at("facts").textContent = "";
  at("failed").textContent = String(error);
  throw error;
}
