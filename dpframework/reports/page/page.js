// The script of a page. It folds nodes of the graph, draws arrows for uses of releases, and unfolds all for printing.
(() => {
  "use strict";
  const page = document.documentElement;
  const graph = document.querySelector(".graph");
  const all = [...document.querySelectorAll(".tree details")];
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  const closedAround = (node) => node.parentElement.closest(".tree details:not([open])");

  // A large graph begins folded below some depth. Without this script, all nodes are shown.
  for (const node of all) if (node.hasAttribute("data-folded")) node.open = false;
  for (const tools of document.querySelectorAll(".tools")) {
    tools.hidden = all.length === 0;
    tools.addEventListener("click", (event) => {
      const what = event.target.closest("button")?.dataset.fold;
      if (what === "none") for (const node of all) node.open = true;
      if (what === "all") for (const node of all) node.open = node === all[0];
    });
  }

  // A link to a hidden node unfolds the nodes around it.
  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    let hidden = false;
    for (let node = closedAround(target); node; node = closedAround(node)) {
      node.open = true;
      hidden = true;
    }
    if (hidden) target.scrollIntoView({ behavior: still.matches ? "auto" : "smooth" });
  };
  addEventListener("hashchange", reveal);
  reveal();

  // Printing shows all nodes. Afterwards the folded ones are folded again.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const node of folded) node.open = true;
  });
  addEventListener("afterprint", () => {
    for (const node of folded) node.open = false;
  });

  // Arrows lead from a release to the nodes that use it, to the right of the boxes. They begin or end at a folded node
  // if it hides the release or the user.
  const users = graph ? [...graph.querySelectorAll("[data-uses]")] : [];
  if (users.length > 0) {
    const draw = (name, attributes, parent) => {
      const made = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
      parent.append(made);
      return made;
    };
    const arcs = draw("svg", { class: "arcs", "aria-hidden": "true", focusable: "false" }, graph);
    const boxOf = (item) => item.querySelector(".box");
    const shownFor = (item) => {
      let shown = item;
      for (let node = closedAround(item); node; node = closedAround(node)) shown = node.parentElement;
      return shown;
    };
    let drawn = [];

    const redraw = () => {
      arcs.replaceChildren();
      drawn = [];
      const origin = graph.getBoundingClientRect();
      const left = origin.left - graph.scrollLeft;
      const room = parseFloat(getComputedStyle(graph).paddingRight) - 8;
      const marker = draw("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7,
        markerHeight: 7, markerUnits: "userSpaceOnUse", orient: "auto" }, draw("defs", {}, arcs));
      draw("path", { d: "M0 0 8 4 0 8z" }, marker);
      const seen = new Set();
      for (const user of users) {
        for (const id of user.dataset.uses.split(" ")) {
          const from = shownFor(document.getElementById(id));
          const to = shownFor(user);
          const key = `${from.id} ${to.id}`;
          if (from === to || seen.has(key)) continue;
          seen.add(key);
          const [a, b] = [boxOf(from).getBoundingClientRect(), boxOf(to).getBoundingClientRect()];
          const [ya, yb] = [a.top + a.height / 2 - origin.top, b.top + Math.min(b.height / 2, 14) - origin.top];
          const [xa, xb] = [a.right - left + 2, b.right - left + 2];
          const bulge = Math.max(xa, xb) + (room * 4) / 3 * (1 - Math.exp(-(40 + Math.abs(yb - ya)) / 180));
          const path = draw("path", { d: `M${xa} ${ya}C${bulge} ${ya} ${bulge} ${yb} ${xb} ${yb}`,
            "marker-end": "url(#arrow)" }, arcs);
          drawn.push({ from, to, path });
        }
      }
      arcs.setAttribute("width", graph.scrollWidth);
      arcs.setAttribute("height", graph.scrollHeight);
    };

    const relate = (item) => {
      for (const box of graph.querySelectorAll(".box.related")) box.classList.remove("related");
      for (const { from, to, path } of drawn) {
        const related = item === from || item === to;
        path.classList.toggle("related", related);
        if (related) for (const end of [from, to]) boxOf(end).classList.add("related");
      }
    };
    const itemAt = (event) => event.target.closest(".box, summary")?.closest("li");
    graph.addEventListener("mouseover", (event) => relate(itemAt(event)));
    graph.addEventListener("mouseleave", () => relate(null));
    graph.addEventListener("focusin", (event) => relate(itemAt(event)));
    graph.addEventListener("focusout", () => relate(null));

    let waiting = 0;
    const later = () => {
      clearTimeout(waiting);
      waiting = setTimeout(redraw);
    };
    graph.classList.add("has-arcs");
    graph.addEventListener("toggle", later, true);
    new ResizeObserver(later).observe(graph.querySelector(".tree"));
    redraw();
    page.dataset.arcs = drawn.length;
  }

  page.dataset.script = "ran";
})();
