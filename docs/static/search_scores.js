// How the site's search ranks what it finds: answers first, then pages, then internals.
var Scorer = {
  score: ([page, , , , score, , kind]) => {
    if (page === "how-to") return score + (kind === "title" ? 100 : 12);
    if (kind === "object") return score - 12;
    if (page === "changelog" || page.startsWith("reference/") || page.startsWith("experiments/")) return score - 10;
    return score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
