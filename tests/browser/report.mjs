// Opens reports in a real browser and uses them as a reader would:
//   node report.mjs IMAGES.html TABLE.html [FOLDER FOR SCREENSHOTS]
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [images, table, shots] = process.argv.slice(2);
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic", "--no-first-run"];
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", ...quiet] });

async function open(file, options = {}) {
  const page = await browser.newPage(options);
  const complaints = [];
  const requests = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => requests.push(request.url()));
  await page.goto(pathToFileURL(file).href);
  return { page, complaints, requests };
}

async function fits(page, width) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= width, `the page is ${wide} pixels wide in a window of ${width}`);
}

async function check(name, test) {
  await test();
  console.log(`ok  ${name}`);
}

await check("an image report draws every picture, says nothing on the console and asks for nothing", async () => {
  const { page, complaints, requests } = await open(images, { viewport: { width: 1200, height: 900 } });
  assert.equal(requests.length, 1, `requests: ${requests}`);
  assert.ok((await page.locator("article").count()) > 0);
  const painted = await page.locator("canvas").evaluateAll((all) =>
    all.map((c) => {
      const data = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
      return new Set(data).size;
    }),
  );
  assert.ok(painted.length >= 4 && painted.every((colours) => colours > 3), `colours: ${painted}`);
  if (shots) await page.screenshot({ path: `${shots}/images.png`, fullPage: true });
  assert.deepEqual(complaints, []);
});

await check("the scrubber moves the picture and the numbers, by mouse and by keys", async () => {
  const { page, complaints } = await open(images);
  const path = page.locator(".path").first();
  const slider = path.locator("input[type=range]");
  const state = () => path.locator("canvas").first().evaluate((c) => c.toDataURL());
  const numbers = () => path.locator(".numbers").textContent();
  const [before, said] = [await state(), await numbers()];
  assert.match(said, /^time 1\.00: score /);
  await slider.fill("0");
  assert.match(await numbers(), /^time 0\.00: score .*, credit so far 0$/);
  assert.notEqual(await state(), before);
  await slider.focus();
  await page.keyboard.press("ArrowRight");
  assert.match(await numbers(), /^time 0\.05: /);
  await page.keyboard.press("End");
  assert.equal(await numbers(), said);
  assert.equal(await state(), before);
  assert.deepEqual(complaints, []);
});

await check("names are text: what looks like markup stays what it is", async () => {
  const { page } = await open(images);
  const heading = await page.locator("article h2").first().textContent();
  assert.match(heading, /<b>&amp;bold/);
  assert.equal(await page.locator("article h2 b, nav b").count(), 0);
});

await check("a table report has bars with names, and its metrics can be sorted", async () => {
  const { page, complaints, requests } = await open(table);
  assert.equal(requests.length, 1, `requests: ${requests}`);
  assert.ok((await page.locator("svg.bars rect").count()) > 2);
  const names = await page.locator("svg.bars text").allTextContents();
  assert.ok(names.some((name) => name.startsWith("height = ")), `names: ${names}`);
  if (shots) await page.screenshot({ path: `${shots}/table.png`, fullPage: true });
  if ((await page.locator("#metrics:not([hidden])").count()) > 0) {
    const column = () => page.locator("#metrics tbody tr td:nth-child(2)").allTextContents();
    const button = page.locator("#metrics th:nth-child(2) button");
    await button.click();
    const up = (await column()).map(Number);
    assert.deepEqual(up, [...up].sort((a, b) => a - b));
    await button.press("Enter");
    assert.deepEqual((await column()).map(Number), up.reverse());
  }
  assert.deepEqual(complaints, []);
});

await check("nothing overflows on a phone, in light and in dark", async () => {
  for (const file of [images, table]) {
    for (const colorScheme of ["light", "dark"]) {
      const { page } = await open(file, { viewport: { width: 390, height: 844 }, colorScheme });
      await page.locator("details").first().evaluate((d) => (d.open = true));
      await fits(page, 390);
      if (shots) await page.screenshot({ path: `${shots}/phone-${colorScheme}-${file === images ? "images" : "table"}.png` });
    }
  }
});

await browser.close();
