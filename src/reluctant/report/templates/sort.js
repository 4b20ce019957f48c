// Tables marked sortable: a click on a heading sorts by it, a second click turns the order around.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], headings = [...table.tHead.rows[0].cells];
  const key = (row, column) => row.cells[column].dataset.key ?? row.cells[column].textContent.trim();
  const compare = (a, b) => {
    const [x, y] = [Number(a), Number(b)], [blank, empty] = [a === "", b === ""];
    if (blank || empty) return blank - empty;
    return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, "en", { numeric: true }) : x - y;
  };
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      headings.forEach((each) => each.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const order = [...body.rows].sort((a, b) => {
        const [x, y] = [key(a, column), key(b, column)];
        return x === "" || y === "" || !down ? compare(x, y) : compare(y, x); // unknown values stay last
      });
      body.append(...order);
    });
  });
}

// Layers: a link to a closed one opens it, and one button opens all of them.
const layers = [...document.querySelectorAll("details")];
const open = () => document.getElementById(location.hash.slice(1))?.querySelector("details")?.setAttribute("open", "");
addEventListener("hashchange", open);
open();
for (const link of document.querySelectorAll("nav.contents a")) link.addEventListener("click", () => setTimeout(open));
const contents = document.querySelector("nav.contents");
if (contents && layers.length) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "open-all";
  button.textContent = "Open all sections";
  button.addEventListener("click", () => layers.forEach((layer) => { layer.open = true; }));
  contents.append(button);
}
