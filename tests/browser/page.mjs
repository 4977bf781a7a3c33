// Opens one page in a real browser and answers what a check saw, as JSON: node page.mjs CHECK FILE [ARGUMENT]
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [check, file, argument] = process.argv.slice(2);
const url = pathToFileURL(file).href;
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf-8");
const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

async function open({ width = 1280, height = 900, colorScheme = "light", javaScriptEnabled = true, hash = "" } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme, javaScriptEnabled });
  const page = await context.newPage();
  const seen = { requests: [], messages: [] };
  page.on("request", (request) => seen.requests.push(request.url()));
  page.on("requestfailed", (request) => {
    // A request that the page's policy stops never leaves the browser, which reports it all the same.
    if (request.failure().errorText === "csp") seen.requests.splice(seen.requests.indexOf(request.url()), 1);
  });
  page.on("console", (message) => seen.messages.push(message.text()));
  page.on("pageerror", (error) => seen.messages.push(String(error)));
  await page.goto(url + hash);
  // The script unpacks the list of records, and listens to the reader from then on.
  if (javaScriptEnabled) await page.waitForSelector("#record-list .body .row", { state: "attached" });
  return { page, seen };
}

const focusedId = (page) => page.evaluate(() => document.activeElement.id || document.activeElement.tagName);

const checks = {
  // Accessibility, overflow, requests and messages at one size and in one colour scheme.
  async look() {
    const { width, colorScheme } = JSON.parse(argument);
    const { page, seen } = await open({ width, colorScheme });
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    // What is folded or off the screen is checked as well.
    await page.evaluate(() => {
      for (const element of document.querySelectorAll("details")) element.open = true;
      for (const element of document.querySelectorAll(".file")) element.style.contentVisibility = "visible";
    });
    const messages = [...seen.messages];
    await page.evaluate(axe);
    const found = await page.evaluate(() => globalThis.axe.run(document));
    await page.click("#record-list .row a");
    const inDrawer = await page.evaluate(() => globalThis.axe.run(document));
    await page.keyboard.press("Escape");
    const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const violations = [...found.violations, ...inDrawer.violations].map(({ id, nodes }) => [id, nodes.map((node) => node.html.slice(0, 200))]);
    return { overflow, violations, passes: found.passes.length, requests: seen.requests, messages, background };
  },

  async shoot() {
    const { width, height, colorScheme, path } = JSON.parse(argument);
    const { page } = await open({ width, height, colorScheme });
    await page.screenshot({ path });
    return {};
  },

  async keyboard() {
    const { page } = await open();
    const focused = {};
    for (const key of ["j", "j", "k", "n", "n", "p", "g"]) {
      await page.keyboard.press(key);
      (focused[key] ??= []).push(await focusedId(page));
    }
    const before = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.keyboard.press("t");
    const after = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.keyboard.press("?");
    const help = await page.evaluate(() => document.querySelector("#keys").open);
    await page.keyboard.press("Escape");
    await page.keyboard.press("/");
    const filter = await focusedId(page);
    await page.keyboard.type("jtg?");
    const typed = await page.inputValue("#query");
    await page.fill("#query", "");
    await page.focus("#record-list");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    const row = await page.evaluate(() => document.activeElement.hash);
    await page.keyboard.press("Enter");
    await page.waitForSelector("#record[open]");
    const opened = await page.textContent("#record-title");
    await page.keyboard.press("Escape");
    // The dialog says a moment later that it was closed; then the row has the focus again.
    await page.waitForFunction(() => document.activeElement.hash);
    const back = await page.evaluate(() => document.activeElement.hash);
    return { focused, changed: before !== after, help, filter, typed, row, opened, back };
  },

  async filter() {
    const { page } = await open();
    const answer = {};
    for (const words of JSON.parse(argument)) {
      await page.fill("#query", words);
      const rows = await page.evaluate(() => [...document.querySelectorAll("#record-list .body .row")].map((row) => row.innerText));
      answer[words] = { count: await page.textContent("#count"), rows };
    }
    await page.fill("#query", "");
    await page.click("[data-kind=refusal]");
    answer.refusals = await page.textContent("#count");
    answer.failed = await page.evaluate(() => [...document.querySelectorAll("#record-list .failed")].map((cell) => cell.textContent));
    return answer;
  },

  async permalink() {
    const { page, seen } = await open({ hash: `#r-${argument}` });
    await page.waitForSelector("#record[open]");
    const title = await page.textContent("#record-title");
    const text = await page.textContent("#record-text");
    const exact = await page.getAttribute("#record-copy", "data-copy");
    await page.click("#record-after");
    await page.waitForFunction((old) => document.querySelector("#record-title").textContent !== old, title);
    return { title, text, exact, next: await page.textContent("#record-title"), messages: seen.messages };
  },

  // What the policy lets through of an attack by markup and by script.
  async policy() {
    const { page, seen } = await open();
    const violated = await page.evaluate(async () => {
      const found = [];
      document.addEventListener("securitypolicyviolation", (event) => found.push(event.effectiveDirective));
      const box = document.createElement("div");
      box.innerHTML = "<img src='http://127.0.0.1:9/x' onerror='window.broken=1'><b style='color:red'>x</b><a onclick='window.broken=1' id='trap'>x</a>";
      document.body.append(box);
      const script = document.createElement("script");
      script.textContent = "window.broken = 1";
      document.body.append(script);
      await fetch("http://127.0.0.1:9/").catch(() => 0);
      document.querySelector("#trap").click();
      await new Promise((done) => setTimeout(done, 200));
      return { found, broken: Boolean(window.broken) };
    });
    return { ...violated, requests: seen.requests.filter((each) => each !== url) };
  },

  async plain() {
    const { page } = await open({ javaScriptEnabled: false });
    return { text: await page.locator("main").innerText() };
  },

  async print() {
    const { page } = await open();
    await page.emulateMedia({ media: "print" });
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    const shown = await page.evaluate(() => ({
      bar: getComputedStyle(document.querySelector(".bar")).display,
      filter: getComputedStyle(document.querySelector(".filter")).display,
      rows: document.querySelectorAll("#record-list .body .row").length,
      hidden: getComputedStyle(document.querySelector(".diff")).overflowX,
    }));
    const pdf = await page.pdf();
    return { ...shown, pdf: pdf.length };
  },

  // Times of a large page, in milliseconds: first paint, list usable, and filter keystrokes.
  async speed() {
    const { page, seen } = await open();
    await page.waitForSelector("#record-list .body .row");
    const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
    const usable = await page.evaluate(() => performance.now());
    const keystrokes = await page.evaluate(async () => {
      const times = [];
      const query = document.querySelector("#query");
      for (const value of ["e", "ed", "edi", "edit", "edit_file s", "", "plan_scope"]) {
        const start = performance.now();
        query.value = value;
        query.dispatchEvent(new Event("input"));
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
        times.push(performance.now() - start);
      }
      return times;
    });
    const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
    return { paint, usable, keystrokes, nodes, messages: seen.messages };
  },
};

try {
  console.log(JSON.stringify(await checks[check]()));
} finally {
  await browser.close();
}
