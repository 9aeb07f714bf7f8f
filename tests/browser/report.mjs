// Opens reports in a real browser and uses them as a reader would:
//   node report.mjs IMAGES.html TABLE.html FIRST.html AGAINST.html ROW.html GLANCE.html [FOLDER FOR SCREENSHOTS]
// IMAGES was made anew from the files beside FIRST; TABLE has metrics; AGAINST and ROW compare with a population.
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [images, table, first, against, row, glance, shots] = process.argv.slice(2);
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
  assert.match(await numbers(), /^time 0\.00: score .*, credit so far about 0$/);
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
  const labels = await page.locator(".targets label").allTextContents();
  assert.ok(labels.includes("<i>one</i>"), `classes: ${labels}`);
  assert.equal(await page.locator("article b, nav b, article i").count(), 0);
});

await check("the target switch shows the other score, by mouse and by keys", async () => {
  const { page, complaints } = await open(images);
  const article = page.locator("article").first();
  const radios = article.locator(".targets input[type=radio]");
  assert.equal(await radios.count(), 2);
  const shown = () => article.locator(".part:visible");
  const said = async () => [await shown().locator("h2").textContent(), await shown().locator("canvas").nth(1).evaluate((c) => c.toDataURL())];
  const [heading, picture] = await said();
  assert.match(heading, /: four, score /);
  await radios.nth(1).check();
  const [other, otherPicture] = await said();
  assert.match(other, /: <i>one<\/i>, score /);
  assert.notEqual(picture, otherPicture);
  assert.equal(await shown().count(), 1);
  // The other score has its own path.
  const slider = shown().locator("input[type=range]").first();
  await slider.fill("3");
  assert.match(await shown().locator(".numbers").first().textContent(), /^time 0\.15: score /);
  await radios.nth(1).focus();
  await page.keyboard.press("ArrowUp");
  assert.deepEqual(await said(), [heading, picture]);
  assert.deepEqual(complaints, []);
});

await check("a page made anew from the saved files says what the first one said", async () => {
  const texts = [];
  for (const file of [images, first]) {
    const { page } = await open(file);
    const article = page.locator("article").first();
    texts.push([await article.locator("h2").allTextContents(), await article.locator(".numbers").allTextContents(), await article.locator("figcaption").count()]);
  }
  assert.deepEqual(texts[0], texts[1]);
});

await check("a comparison opens with the counterpart, the input, the difference, the credit and the score between", async () => {
  const { page, complaints } = await open(against, { viewport: { width: 1200, height: 900 } });
  const card = page.locator("article .comparison");
  assert.equal(await card.count(), 1, "ig compares with black, so it has no card");
  assert.match(await card.locator("h3").textContent(), /^Compared with 'Sneaker': transport$/);
  assert.match(await card.locator("p").first().textContent(), /would most easily have been .* The model takes it for '/);
  const captions = await card.locator("figcaption").allTextContents();
  assert.deepEqual(captions.slice(0, 4), ["counterpart in 'Sneaker'", "input", "difference", "credit"]);
  const pictures = await card.locator("canvas").evaluateAll((all) => all.map((c) => c.toDataURL()));
  assert.equal(new Set(pictures).size, 4, "four pictures, all different");
  assert.equal(await card.locator("svg").count(), 1);
  const below = await page.locator("article .part > .row figcaption strong").allTextContents();
  assert.deepEqual(below, ["ig"], "what the card shows is not shown again");
  assert.equal(await card.locator("details").count(), 1, "the facts of its certificate are in the card");
  if (shots) await page.screenshot({ path: `${shots}/against.png`, fullPage: true });
  assert.deepEqual(complaints, []);
});

await check("a row of a table stands beside its counterpart", async () => {
  const { page, complaints } = await open(row);
  const cells = await page.locator(".comparison .counterpart td").allTextContents();
  assert.equal(cells.length, 3 * 4, `cells: ${cells}`);
  assert.ok(["weight", "height", "sex"].every((name) => cells.includes(name)), `cells: ${cells}`);
  if (shots) await page.screenshot({ path: `${shots}/row.png`, fullPage: true });
  assert.deepEqual(complaints, []);
});

await check("a table report has bars with names, and its metrics can be sorted", async () => {
  const { page, complaints, requests } = await open(table);
  assert.equal(requests.length, 1, `requests: ${requests}`);
  assert.ok((await page.locator("svg.bars rect").count()) > 2);
  const names = await page.locator("svg.bars text").allTextContents();
  assert.ok(names.some((name) => name.startsWith("height = ")), `names: ${names}`);
  if (shots) await page.screenshot({ path: `${shots}/table.png`, fullPage: true });
  const cells = (column) => page.locator(`#metrics tbody tr td:nth-child(${column})`).allTextContents();
  const heads = await page.locator("#metrics th button").allTextContents();
  assert.equal((await cells(1)).length, 3, `methods: ${await cells(1)}`);
  for (const column of heads.keys()) {
    const head = page.locator(`#metrics th:nth-child(${column + 1})`);
    await head.locator("button").click();
    assert.equal(await head.getAttribute("aria-sort"), "ascending");
    const up = await cells(column + 1);
    // What a metric does not say of a method stands last, whichever way.
    const known = up.filter((text) => text !== "-");
    assert.deepEqual(up.slice(0, known.length), known);
    const value = (text) => (column === 0 ? text : Number(text.split(" ")[0]));
    assert.ok(known.every((text, i) => i === 0 || value(known[i - 1]) <= value(text)), `${heads[column]}: ${up}`);
    await head.locator("button").press("Enter");
    assert.equal(await head.getAttribute("aria-sort"), "descending");
    const down = await cells(column + 1);
    assert.deepEqual(down.slice(0, known.length).map(value), known.map(value).reverse());
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

await check("a table at a glance draws every picture quickly, takes another column, and fits a phone", async () => {
  const { page, complaints, requests } = await open(glance, { viewport: { width: 1200, height: 900 } });
  assert.equal(requests.length, 1, `requests: ${requests}`);
  const painted = await page.locator("canvas").evaluateAll((all) =>
    all.map((c) => new Set(c.getContext("2d").getImageData(0, 0, c.width, c.height).data).size),
  );
  assert.ok(painted.length === 4 && painted.every((colours) => colours > 5), `colours: ${painted}`);
  const picture = () => page.locator("#dependence").evaluate((c) => c.toDataURL());
  const before = await picture();
  // The heaviest column is drawn first.
  const columns = await page.locator("#column option").allTextContents();
  assert.deepEqual([...columns].sort(), ["height", "sex", "weight"]);
  await page.locator("#column").selectOption({ label: columns[2] });
  assert.ok((await picture()) !== before, "another column, another picture");
  const heads = await page.locator("#cohorts th").allTextContents();
  assert.equal(heads[0], "sex");
  assert.ok(heads[1].startsWith("female (") && heads[2].startsWith("male ("), `cohorts: ${heads}`);
  assert.match(await page.locator("#cohorts td:nth-child(2)").first().textContent(), /^-?[\d.]+ \[-?[\d.]+, -?[\d.]+\]$/);
  assert.match(await page.locator("#about").textContent(), /^300 rows by ig/);
  if (shots) await page.screenshot({ path: `${shots}/glance.png`, fullPage: true });
  assert.deepEqual(complaints, []);
  for (const colorScheme of ["light", "dark"]) {
    const phone = await open(glance, { viewport: { width: 390, height: 844 }, colorScheme });
    await fits(phone.page, 390);
    if (shots) await phone.page.screenshot({ path: `${shots}/glance-phone-${colorScheme}.png` });
  }
});

await browser.close();
