// What charts say under the pointer, and tables that sort.
(function () {
  "use strict";

  // ---- what a mark says
  const tip = document.getElementById("tip");
  function say(event) {
    const mark = event.target.closest("[data-t]");
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.dataset.t;
    const left = Math.min(event.clientX + 12, document.documentElement.clientWidth - tip.offsetWidth - 8);
    tip.style.left = Math.max(8, left) + "px";
    tip.style.top = (event.clientY > 90 ? event.clientY - tip.offsetHeight - 10 : event.clientY + 16) + "px";
  }
  document.addEventListener("pointermove", say);
  document.addEventListener("pointerdown", say);
  document.addEventListener("scroll", () => { tip.hidden = true; });

  // ---- tables that sort when a heading is clicked
  function sortable(table) {
    const headings = [...table.tHead.rows[0].cells];
    const value = (row, column) => {
      const found = row.cells[column];
      const number = parseFloat(found.dataset.value ?? found.textContent);
      return Number.isNaN(number) ? found.textContent.trim().toLowerCase() : number;
    };
    const compare = (a, b) => {
      if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
      return a < b ? -1 : a > b ? 1 : 0;
    };
    headings.forEach((heading, column) => {
      heading.querySelector("button").addEventListener("click", () => {
        const up = heading.getAttribute("aria-sort") === "descending" || (!heading.hasAttribute("aria-sort") && column < 2);
        headings.forEach((other) => other.removeAttribute("aria-sort"));
        heading.setAttribute("aria-sort", up ? "ascending" : "descending");
        const rows = [...table.tBodies[0].rows];
        rows.sort((a, b) => (up ? 1 : -1) * compare(value(a, column), value(b, column)));
        table.tBodies[0].append(...rows);
      });
    });
  }

  document.querySelectorAll("table.sortable").forEach(sortable);
  document.documentElement.dataset.ready = "yes";
})();
