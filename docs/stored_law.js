// Answers the law page as the server would, from the file that make_law_page.py writes.
const { answers, head_dims: dims, heads, most } = window.headwiseTable;

function storedHead(length, dim, mask) {
  if (length > most) return null;
  const { picks, low, high } = heads[`${length} ${dim} ${mask}`];
  const weights = picks.map((key) => Array.from({ length }, (_, column) => (column === key ? 1 : 0)));
  return { weights, used: [...new Set(picks)].sort((a, b) => a - b), low, high };
}

window.headwiseStored = async (address) => {
  const given = new URLSearchParams(address.split("?")[1]);
  const length = Number(given.get("length")), mask = given.get("mask"), dim = Number(given.get("head_dim"));
  if (address.startsWith("/api/head")) return storedHead(length, dim, mask);
  const known = answers[`${length} ${mask}`];
  const critical = known.critical[(Number(given.get("percent")) - 50) / 5];
  return { ...known, critical_head_dim: critical, at: known.at[dims.indexOf(dim)] };
};
