// Opens the page of docs/browser in a real browser, where ONNX Runtime's web build runs an exported explainer:
//   node explainer.mjs PAGE_FOLDER EXPLAINER.onnx EXPECTED.json [FOLDER FOR SCREENSHOTS]
// EXPECTED is what `brenier explain` says of the same images: [{"target": 9, "values": [...]}, ...].
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join, normalize } from "node:path";
import { chromium } from "playwright-core";

const [folder, explainer, expectedFile, shots] = process.argv.slice(2);
const expected = JSON.parse(await readFile(expectedFile, "utf8"));
const KINDS = { ".html": "text/html", ".mjs": "text/javascript", ".wasm": "application/wasm", ".onnx": "application/octet-stream" };

let served = explainer;
const server = createServer(async (request, response) => {
  const path = normalize(decodeURIComponent(new URL(request.url, "http://here").pathname)).replace(/^(\.\.[/\\])+/, "");
  const file = path === "/explainer.onnx" ? served : join(folder, path === "/" ? "index.html" : path);
  try {
    const content = await readFile(file);
    response.writeHead(200, { "content-type": KINDS[extname(file)] ?? "application/octet-stream" }).end(content);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const address = `http://127.0.0.1:${server.address().port}/`;

const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic", "--no-first-run"];
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", ...quiet] });

async function check(name, test) {
  await test();
  console.log(`ok  ${name}`);
}

async function open(options = {}) {
  const page = await browser.newPage(options);
  const complaints = [];
  const elsewhere = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => request.url().startsWith(address) || elsewhere.push(request.url()));
  await page.goto(address);
  return { page, complaints, elsewhere };
}

const answered = (page, image) => page.waitForFunction((k) => globalThis.answer?.image === k, image, { timeout: 60_000 });

try {
  await check("an explainer runs in the browser, gives the credit of explain, and paints it", async () => {
    const { page, complaints, elsewhere } = await open({ viewport: { width: 900, height: 640 } });
    const differences = [];
    for (let k = 0; k < expected.length; k++) {
      if (k > 0) await page.locator("nav button").nth(k).click();
      await answered(page, k);
      const answer = await page.evaluate(() => globalThis.answer);
      const { target, values } = expected[k];
      assert.equal(answer.explained, target);
      const size = Math.max(...values.map(Math.abs));
      differences.push(Math.max(...values.map((value, i) => Math.abs(value - answer.credit[i]))) / size);
      const sum = answer.credit.reduce((a, b) => a + b, 0);
      assert.match(await page.locator("#facts").textContent(), new RegExp(`^Credit sums to ${sum.toFixed(3).replace(".", "\\.")};`));
      const colours = await page.locator("#credit").evaluate((canvas) => {
        const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        const seen = new Set();
        for (let i = 0; i < data.length; i += 4) seen.add(data.slice(i, i + 3).join());
        return seen.size;
      });
      assert.ok(colours > 50, `${colours} colours`);
    }
    // The file adds up in float32. Where the input of a ReLU is zero but for rounding, its gradient at that node is the other one:
    // on this network that moves credit by a few thousandths of the largest.
    const largest = Math.max(...differences);
    assert.ok(Math.min(...differences) < 1e-5 && largest < 0.01, `credit differs by ${differences}`);
    console.log(`    credit differs by ${Math.min(...differences).toExponential(1)} to ${largest.toExponential(1)} of the largest`);
    if (shots) await page.screenshot({ path: `${shots}/explainer.png`, fullPage: true });
    assert.deepEqual(complaints, []);
    assert.deepEqual(elsewhere, [], "nothing is asked for elsewhere");
  });

  await check("on a telephone it is not wider than the screen", async () => {
    const { page } = await open({ viewport: { width: 390, height: 800 } });
    await answered(page, 0);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 390, `${wide} pixels`);
    if (shots) await page.screenshot({ path: `${shots}/explainer-narrow.png`, fullPage: true });
  });

  await check("without the file it says how to make it", async () => {
    served = "/nowhere";
    const { page } = await open();
    await page.waitForFunction(() => document.getElementById("failed").textContent !== "");
    assert.match(await page.locator("#failed").textContent(), /explainer\.onnx is not there \(404\): see docs\/export\.md/);
  });
} finally {
  await browser.close();
  server.close();
}
