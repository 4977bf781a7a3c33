"use strict";
(() => {
  const find = (selector) => document.querySelector(selector);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const root = document.documentElement;

  // Colours: the system's choice until the reader switches.
  function switchTheme() {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  }

  function copyText(button, text) {
    const done = () => { button.textContent = "Copied"; setTimeout(() => { button.textContent = "Copy"; }, 1500); };
    const select = () => {
      const range = document.createRange();
      range.selectNodeContents(button.previousElementSibling || button);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      button.textContent = "Press Ctrl+C";
    };
    // Some browsers give pages from a file no clipboard.
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, select); else select();
  }

  // Keys: the next or previous element of a kind, counted from where the reader is.
  function step(elements, by) {
    const line = 72;
    const shown = elements.filter((element) => element.getClientRects().length);
    let target = by > 0
      ? shown.find((element) => element.getBoundingClientRect().top > line + 4)
      : shown.findLast((element) => element.getBoundingClientRect().top < line - 16);
    if (!target) return;
    target.scrollIntoView({ block: "start" });
    target.focus({ preventScroll: true });
  }
  const keys = {
    j: () => step(all("main section"), 1),
    k: () => step(all("main section"), -1),
    n: () => step(all(".file"), 1),
    p: () => step(all(".file"), -1),
    g: () => { scrollTo(0, 0); find("#verdict").focus({ preventScroll: true }); },
    t: switchTheme,
    "/": () => { find("#records").scrollIntoView(); find("#query").focus(); },
    "?": () => find("#keys").showModal(),
  };
  addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, dialog");
    if (event.ctrlKey || event.metaKey || event.altKey || typing || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });
  find("#theme").addEventListener("click", switchTheme);
  find("#help").addEventListener("click", keys["?"]);
  for (const button of all("[data-copy]")) button.addEventListener("click", () => copyText(button, button.dataset.copy));

  // Records: one column each, with one dictionary for what repeats; whole records in blocks. All of it is deflated.
  async function unpack(text) {
    const packed = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).text();
  }
  const packed = JSON.parse(find("#record-data").textContent);
  let data = null;
  let count = 0;
  let positions = null;
  const text = (name, index) => data.words[data[name][index]];
  const time = (index) => new Date(data.at[index]).toISOString();
  const HEIGHT = 30;
  const box = find("#record-list");
  const body = box.querySelector(".body");
  let shown = [];
  let kind = "all";
  let current = -1;
  let haystack = null;

  function buildHaystack() {
    haystack = [];
    for (let i = 0; i < count; i++) {
      const words = [`#${data.seq[i]}`, text("role", i), text("tool", i), text("what", i), text("outcome", i)];
      haystack.push(words.join(" ").toLowerCase());
    }
  }

  function applyFilter() {
    const words = find("#query").value.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length && !haystack) buildHaystack();
    shown = [];
    for (let i = 0; i < count; i++) {
      if ((kind === "all" || data.kind[i] === kind) && words.every((word) => haystack[i].includes(word))) shown.push(i);
    }
    find("#count").textContent = `${shown.length.toLocaleString("en")} of ${count.toLocaleString("en")}`;
    body.style.height = `${shown.length * HEIGHT}px`;
    // A short list is shown whole, a long one scrolls.
    box.style.height = `${(Math.min(Math.max(count, 3), 30) + 1) * HEIGHT + 4}px`;
    box.setAttribute("aria-rowcount", shown.length + 1);
    box.scrollTop = 0;
    drawRows();
  }

  function cell(row, content, name) {
    const element = document.createElement("span");
    element.setAttribute("role", "cell");
    if (name) element.className = name;
    element.append(content);
    row.append(element);
  }

  function makeRow(place) {
    const index = shown[place];
    const row = document.createElement("div");
    row.className = data.seq[index] === current ? "row current" : "row";
    row.setAttribute("role", "row");
    row.setAttribute("aria-rowindex", place + 2);
    row.style.top = `${place * HEIGHT}px`;
    const link = document.createElement("a");
    link.href = `#r-${data.seq[index]}`;
    link.textContent = `#${data.seq[index]}`;
    cell(row, link, "right");
    cell(row, time(index).slice(0, 19).replace("T", " "), "wide");
    cell(row, text("role", index), "wide");
    cell(row, text("tool", index));
    cell(row, text("what", index), "wide path");
    cell(row, text("outcome", index), data.kind[index] === "refusal" ? "failed" : "");
    cell(row, data.ms[index] === null ? "" : String(data.ms[index]), "right wide");
    return row;
  }

  function drawRows() {
    const first = Math.max(0, Math.floor(box.scrollTop / HEIGHT) - 6);
    const last = Math.min(shown.length, first + Math.ceil(box.clientHeight / HEIGHT) + 12);
    const focused = document.activeElement.closest?.("#record-list a")?.hash;
    body.replaceChildren(...Array.from({ length: Math.max(0, last - first) }, (_, offset) => makeRow(first + offset)));
    if (focused) body.querySelector(`a[href="${focused}"]`)?.focus({ preventScroll: true });
  }

  function moveFocus(by) {
    const active = document.activeElement.closest("#record-list a");
    const place = active ? shown.indexOf(positions.get(Number(active.hash.slice(3)))) + by : 0;
    if (place < 0 || place >= shown.length) return;
    const top = place * HEIGHT;
    if (top < box.scrollTop) box.scrollTop = top;
    if (top > box.scrollTop + box.clientHeight - 3 * HEIGHT) box.scrollTop = top - box.clientHeight + 3 * HEIGHT;
    drawRows();
    body.querySelector(`a[href="#r-${data.seq[shown[place]]}"]`)?.focus({ preventScroll: true });
  }

  let waiting = false;
  box.addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; drawRows(); });
  });
  box.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    moveFocus(by);
  });
  for (const button of all("[data-kind]")) {
    button.addEventListener("click", () => {
      kind = button.dataset.kind;
      for (const other of all("[data-kind]")) other.setAttribute("aria-pressed", String(other === button));
      applyFilter();
    });
  }
  addEventListener("beforeprint", () => {
    // All of a short list is printed; of a long one what is in sight.
    if (shown.length <= 2000) body.replaceChildren(...shown.map((_, place) => makeRow(place)));
  });
  addEventListener("afterprint", drawRows);

  // One record: its block is unpacked when it is asked for.
  const blocks = new Map();
  async function unpackBlock(number) {
    if (!blocks.has(number)) blocks.set(number, (await unpack(packed.blocks[number])).split("\n"));
    return blocks.get(number);
  }

  // Invisible and reordering characters as JSON escapes: still the same value, and nothing hides.
  const hidden = /[\p{C}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u180b-\u180f\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/gu;
  const unitOf = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  const showHidden = (line) => line.replace(hidden, (char) => char.split("").map(unitOf).join(""));

  function prettyRecord(line) {
    // Large numbers and repeated members would be lost by parsing: such a line, and one that is no JSON, is shown as it is.
    let value;
    try { value = JSON.parse(line); } catch { return showHidden(line); }
    if (JSON.stringify(value) !== line) return showHidden(line);
    return JSON.stringify(value, null, 2).split("\n").map(showHidden).join("\n");
  }

  async function openRecord(seq) {
    const index = positions.get(seq);
    if (index === undefined) return;
    const line = (await unpackBlock(Math.floor(index / packed.per_block)))[index % packed.per_block];
    current = seq;
    find("#record-title").textContent = `Record #${seq}`;
    find("#record-summary").textContent = `${time(index)}, ${text("tool", index)}: ${text("outcome", index)}`;
    find("#record-text").textContent = prettyRecord(line);
    find("#record-copy").dataset.copy = line;
    if (!find("#record").open) find("#record").showModal();
    drawRows();
  }

  function openLinked() {
    const match = /^#r-(\d+)$/.exec(location.hash);
    if (match) openRecord(Number(match[1]));
    else if (find("#record").open) find("#record").close();
    const target = match ? null : document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const folded = target?.closest("details") || target?.querySelector(":scope > details");
    if (folded) folded.open = true;
  }

  function stepRecord(by) {
    const seq = data.seq[positions.get(current) + by];
    if (seq !== undefined) location.hash = `#r-${seq}`;
  }
  find("#record-before").addEventListener("click", () => stepRecord(-1));
  find("#record-after").addEventListener("click", () => stepRecord(1));
  for (const button of all("[data-close]")) button.addEventListener("click", () => button.closest("dialog").close());
  find("#record").addEventListener("close", () => {
    const link = `#r-${current}`;
    current = -1;
    history.replaceState(null, "", location.pathname + location.search);
    drawRows();
    body.querySelector(`a[href="${link}"]`)?.focus({ preventScroll: true });
  });

  async function start() {
    data = JSON.parse(await unpack(packed.columns));
    count = data.seq.length;
    positions = new Map(data.seq.map((seq, index) => [seq, index]));
    find("#query").addEventListener("input", applyFilter);
    addEventListener("hashchange", openLinked);
    applyFilter();
    openLinked();
  }
  start();
})();
