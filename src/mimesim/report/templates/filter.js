"use strict";
// Filters the conversations; reading works without it.
(() => {
  const form = document.querySelector("form.filters");
  const all = [...document.querySelectorAll("details.conv")];
  const words = all.map((entry) => entry.textContent.toLowerCase());
  const apply = () => {
    const wanted = Object.fromEntries(new FormData(form));
    const text = wanted.text.trim().toLowerCase();
    let shown = 0;
    all.forEach((entry, i) => {
      const fits = ["tone", "stop", "status"].every((key) => !wanted[key] || entry.dataset[key] === wanted[key])
        && (!text || words[i].includes(text));
      entry.hidden = !fits;
      shown += fits;
    });
    form.querySelector("output").textContent = `${shown} of ${all.length}`;
  };
  form.hidden = false;
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  const follow = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.tagName === "DETAILS") target.open = true;
  };
  addEventListener("hashchange", follow);
  apply();
  follow();
})();
