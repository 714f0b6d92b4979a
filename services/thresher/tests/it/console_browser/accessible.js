// What holds for every page of the console. Returns what is wrong, in words.
const wrong = [];
const all = (selector) => [...document.querySelectorAll(selector)];
const is = (so, words) => { if (!so) wrong.push(words); };
const name = (element) => element.outerHTML.slice(0, 120);

is(document.documentElement.lang, "the page has no language");
is(document.title.includes("Thresher"), "the page has no title");
for (const landmark of ["header", "main", "footer"]) {
  is(all(landmark).length === 1, `there is not one ${landmark}`);
}
is(all("a.skip")[0]?.getAttribute("href") === "#main" && document.getElementById("main"), "no link skips to the content");

const levels = all("h1, h2, h3, h4").map((heading) => Number(heading.tagName[1]));
is(levels.filter((level) => level === 1).length === 1 && levels[0] === 1, `headings: ${levels}`);
levels.forEach((level, place) => is(place === 0 || level <= levels[place - 1] + 1, `a heading is left out: ${levels}`));

const ids = all("[id]").map((element) => element.id);
ids.forEach((id, place) => is(ids.indexOf(id) === place, `two elements are called ${id}`));
for (const reference of ["aria-labelledby", "aria-describedby", "for"]) {
  for (const element of all(`[${reference}]`)) {
    for (const id of element.getAttribute(reference).split(" ")) {
      is(ids.includes(id), `${reference}=${id} leads nowhere`);
    }
  }
}

for (const field of all("input:not([type=hidden]), select, textarea")) {
  is([...field.labels].some((label) => label.textContent.trim()), `no label: ${name(field)}`);
}
for (const control of all("button, a[href]")) {
  is(control.textContent.trim() || control.getAttribute("aria-label"), `no words: ${name(control)}`);
  is(control.tabIndex >= 0, `not reached by the keyboard: ${name(control)}`);
}
const buttons = all("main button").map((button) => button.textContent.trim());
buttons.forEach((words, place) => is(buttons.indexOf(words) === place, `two buttons say ${words}`));

for (const table of all("table")) {
  is(table.caption?.textContent.trim(), `no caption: ${name(table)}`);
  is([...table.querySelectorAll("th")].every((cell) => cell.scope), `a header cell has no scope: ${name(table)}`);
  is(table.querySelector("tbody th"), `rows have no header: ${name(table)}`);
}
for (const drawing of all("svg")) {
  const figure = drawing.closest("figure");
  is(drawing.getAttribute("aria-hidden") === "true" && figure?.querySelector("figcaption")?.textContent.trim(), `a chart is not told: ${name(drawing)}`);
}
for (const region of all("nav, section, [role=region], [role=search]")) {
  is(region.getAttribute("aria-label") || region.getAttribute("aria-labelledby"), `a region has no name: ${name(region)}`);
}

// Words stand out from what is behind them (WCAG 2.2, 1.4.3: 4.5 to 1).
const luminance = (colour) => {
  const [red, green, blue] = colour.match(/[\d.]+/g).map((part) => {
    const value = part / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const ground = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (!colour.startsWith("rgba(0, 0, 0, 0")) return colour;
  }
  return "rgb(255, 255, 255)";
};
for (const element of all("body *")) {
  const says = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  if (!says || !element.checkVisibility() || element.closest(".hidden, svg, title")) continue;
  const [one, other] = [luminance(getComputedStyle(element).color), luminance(ground(element))].sort((a, b) => b - a);
  const contrast = (one + 0.05) / (other + 0.05);
  is(contrast >= 4.5, `too little contrast, ${contrast.toFixed(2)}: ${name(element)}`);
}
return wrong;
