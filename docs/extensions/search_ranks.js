// What the built site's own search finds for questions, without a browser:
//     node docs/extensions/search_ranks.js SITE < questions
// It prints, as JSON, a list of [page, title, anchor, score] for each line of standard input, the best five first.
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const site = process.argv[2];
const page = {
  console, URLSearchParams, setTimeout, clearTimeout,
  localStorage: { setItem() {} },
  document: { addEventListener() {}, getElementById: () => null, querySelector: () => null, readyState: "loading",
              documentElement: { dataset: { content_root: "./" } } },
  DOCUMENTATION_OPTIONS: { FILE_SUFFIX: ".html", LINK_SUFFIX: ".html", BUILDER: "html" },
  SPHINX_HIGHLIGHT_ENABLED: false,
  _: (text) => text,
  _ready() {},
};
page.window = vm.createContext(page);
for (const file of ["_static/language_data.js", "_static/searchtools.js", "searchindex.js"])
  vm.runInContext(fs.readFileSync(path.join(site, file), "utf8"), page, { filename: file });
page.questions = fs.readFileSync(0, "utf8").split("\n").filter(Boolean);
vm.runInContext("found = questions.map((q) => Search._performSearch(...Search._parseQuery(q)).reverse())", page);
console.log(JSON.stringify(page.found.map((all) => all.slice(0, 5).map((one) => [one[0], one[1], one[2], one[4]]))));
