// Shows how far work is, and tries settings as soon as a dial moves. Without this script, pages work by their buttons.
(function () {
  "use strict";
  const live = document.getElementById("live");
  let newest = 0;

  function running() {
    return live !== null && live.querySelector("[data-running]") !== null;
  }

  async function show(number, address, options) {
    const answer = await fetch(address, { ...options, headers: { "X-Part": "yes" } }).catch(() => null);
    if (number !== newest || !answer) return;
    const was = running();
    live.innerHTML = await answer.text();
    if (was && !running() && live.dataset.then) {
      if (live.querySelector("a.main")) location.assign(live.dataset.then);
      else location.reload();  // the form to begin again
    }
  }

  async function follow() {
    if (running() && !document.hidden) await show(++newest, live.dataset.from);
    setTimeout(follow, 700);
  }

  const form = document.querySelector("form[data-live]");
  if (form) {
    let waiting;
    form.addEventListener("input", (event) => {
      const said = form.querySelector('output[for="' + event.target.id + '"]');
      if (said) said.textContent = event.target.value;
      clearTimeout(waiting);
      if (event.target.id === "purpose") return form.submit();  // it moves other dials, too
      waiting = setTimeout(() => {
        const body = new URLSearchParams(new FormData(form));
        show(++newest, form.action, { method: "POST", body });
      }, 400);
    });
  }
  if (live) follow();
  document.documentElement.dataset.ready = "yes";
})();
