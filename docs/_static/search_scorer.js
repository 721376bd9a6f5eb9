/* Sphinx's own scores; pages for contributors and the changelog come after all others. */
var Scorer = {
  score: ([docname, , , , score]) =>
    /^(changelog|contribute\/)/.test(docname) ? score - 1000 : score,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2
};
