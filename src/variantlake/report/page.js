"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const main = document.getElementById("main");
  const number = new Intl.NumberFormat("en");
  const PAGE_ROWS = 200;

  // Text is only ever set as text: nothing of the data is read as HTML.
  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value !== null && value !== undefined) made.setAttribute(key, value);
    }
    made.append(...children.map((child) => (child instanceof Node ? child : String(child))));
    return made;
  }

  const count = (value) => (value === null || value === undefined ? "" : number.format(value));
  const percent = (share) =>
    share === null || share === undefined ? "" : `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
  const files = (value) => (value === 1 ? "1 file" : `${count(value)} files`);

  function size(bytes) {
    for (const [unit, scale] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
      if (bytes >= scale) return `${(bytes / scale).toFixed(1)} ${unit}`;
    }
    return `${count(bytes)} bytes`;
  }

  const time = (milliseconds) => new Date(milliseconds).toISOString().slice(0, 19).replace("T", " ");

  function section(id, title) {
    const heading = element("h2", { id: `${id}-title` }, title);
    const made = element("section", { id, "aria-labelledby": `${id}-title` }, heading);
    main.append(made);
    document.getElementById("sections").append(element("li", {}, element("a", { href: `#${id}` }, title)));
    return made;
  }

  function cards(facts) {
    const list = element("dl", { class: "cards" });
    for (const [name, value] of facts) {
      list.append(element("div", { class: "card" }, element("dt", {}, name), element("dd", {}, value)));
    }
    return list;
  }

  // A table of many rows shows PAGE_ROWS at a time, so that 10,000 paths stay fluent.
  function table(caption, columns, rows) {
    const body = element("tbody");
    const head = element("tr", {}, ...columns.map((column) => element("th", { scope: "col", class: column.number ? "number" : null }, column.name)));
    const made = element("table", { class: columns.length > 8 ? "many stacked" : columns.length > 5 ? "many" : null }, element("caption", {}, caption), element("thead", {}, head), body);
    const more = element("button", { type: "button" });
    let shown = 0;
    let wanted = rows;
    function show() {
      const stop = Math.min(shown + PAGE_ROWS, wanted.length);
      for (; shown < stop; shown += 1) {
        const row = element("tr");
        for (const column of columns) {
          const value = column.value(wanted[shown]);
          let cell = column.code && value !== "" ? element("code", {}, value) : value;
          if (column.clip && value !== "") cell = element("div", { class: `clip ${column.clip}`, tabindex: "0", title: value }, cell);
          const style = [column.number && "number", column.whole && "whole", column.wide && "wide", column.class && column.class(wanted[shown])];
          row.append(element("td", { class: style.filter(Boolean).join(" ") || null, "data-name": column.name }, ...(cell === "" ? [] : [cell])));
        }
        body.append(row);
      }
      more.hidden = shown >= wanted.length;
      more.textContent = `Show ${count(Math.min(PAGE_ROWS, wanted.length - shown))} more of ${count(wanted.length)}`;
    }
    more.addEventListener("click", show);
    show();
    const frame = element(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
      made,
    );
    const whole = element("div", {}, frame, more);
    whole.replaceRows = (others) => {
      wanted = others;
      shown = 0;
      body.replaceChildren();
      show();
    };
    return whole;
  }

  function svg(name, attributes, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  // Values of an axis from 0 on: two to five round ones, the last of them at or above `most`.
  function marks(most) {
    if (!(most > 0)) return [0, 1];
    const ten = 10 ** Math.floor(Math.log10(most));
    const step = [0.2, 0.5, 1, 2.5].map((part) => part * ten).find((each) => most / each <= 4) || 2.5 * ten;
    return Array.from({ length: Math.ceil(most / step - 1e-9) + 1 }, (_, place) => place * step);
  }

  // `ends` says what stands at the left and at the right end; the text is in `label` as well.
  function line(label, values, ends, shown) {
    const axis = marks(Math.max(...values, 0));
    const most = axis[axis.length - 1];
    const heightOf = (value) => 112 - (100 * value) / most;
    const step = 600 / Math.max(values.length - 1, 1);
    const points = values.map((value, place) => `${(place * step).toFixed(1)},${heightOf(value).toFixed(1)}`);
    if (values.length === 1) points.push(`600,${points[0].split(",")[1]}`);
    const drawn = svg(
      "svg",
      { viewBox: "-4 4 608 116", height: "120", preserveAspectRatio: "none", role: "img", "aria-label": label },
      ...axis.map((value) => svg("line", {
        x1: "-4", x2: "604", y1: heightOf(value), y2: heightOf(value), stroke: "var(--line)", "vector-effect": "non-scaling-stroke",
      })),
      svg("polyline", {
        points: points.join(" "), fill: "none", stroke: "var(--mark)", "stroke-width": "2",
        "vector-effect": "non-scaling-stroke",
      }),
    );
    // The picture begins at 4 and is 116 high.
    const sides = axis.filter((value) => !(shown === count && value % 1)).map((value) => {
      const mark = element("span", {}, shown(value));
      mark.style.top = `${((heightOf(value) - 4) / 1.16).toFixed(1)}%`;
      return mark;
    });
    const left = element("div", { class: "axis", "aria-hidden": "true" }, ...sides);
    const top = element("span", {}, `at most ${shown(Math.max(...values, 0))}`);
    const bottom = element("p", { class: "ends", "aria-hidden": "true" }, element("span", {}, ends[0]), top, element("span", {}, ends[1]));
    return element("div", { class: "chart" }, left, drawn, bottom);
  }

  function overview() {
    const made = section("overview", "Overview");
    const facts = [
      ["version", count(data.version)],
      ["files", count(data.files)],
      ["size", size(data.bytes)],
      ["rows", data.rows === null ? "unknown" : count(data.rows)],
    ];
    if (data.deleted_rows) facts.push(["deleted rows", count(data.deleted_rows)]);
    const warnings = (data.health || []).filter((each) => each.severity === "warning").length;
    if (warnings) facts.push(["warnings", count(warnings)]);
    if (data.files) facts.push(["average file", size(Math.round(data.bytes / data.files))]);
    made.append(cards(facts));
    made.append(
      table("Columns", [
        { name: "column", code: true, value: (each) => each.name },
        { name: "type", value: (each) => each.type },
        { name: "", value: (each) => (data.partition_columns.includes(each.name) ? "partition" : "") },
      ], data.columns_of_the_table),
      element("h3", {}, "Features and properties"),
      element("p", {}, data.features.join(", ") || "none"),
      table("Properties", [
        { name: "property", code: true, whole: true, value: (each) => each[0] },
        { name: "value", code: true, clip: "value", value: (each) => each[1] },
      ], Object.entries(data.properties)),
    );
  }

  function versions() {
    const all = data.versions;
    if (!all.length) return;
    const made = section("versions", "Versions");
    const last = all[all.length - 1];
    const ends = [`version ${count(all[0].version)}`, `version ${count(last.version)}`];
    made.append(
      element("h3", {}, "Size"),
      line(`Size from version ${all[0].version}, ${size(all[0].bytes)}, to version ${last.version}, ${size(last.bytes)}`,
        all.map((each) => each.bytes), ends, size),
      element("h3", {}, "Files"),
      line(`Files from version ${all[0].version}, ${files(all[0].files)}, to version ${last.version}, ${files(last.files)}`,
        all.map((each) => each.files), ends, count),
      table(`${all.length === 1 ? "The last version" : `The last ${count(all.length)} versions`}, times in UTC`, [
        { name: "version", number: true, value: (each) => count(each.version) },
        { name: "time", whole: true, value: (each) => time(each.timestamp) },
        { name: "operation", value: (each) => each.operation || "" },
        { name: "files", number: true, value: (each) => count(each.files) },
        { name: "added", number: true, value: (each) => count(each.added) },
        { name: "removed", number: true, value: (each) => count(each.removed) },
        { name: "size", number: true, value: (each) => size(each.bytes) },
        { name: "rows", number: true, value: (each) => count(each.rows) },
      ], [...all].reverse()),
    );
  }

  function types(path) {
    return Object.entries(path.types || {})
      .map(([name, share]) => (share === 1 ? name : `${name} ${percent(share)}`))
      .join(", ");
  }

  function paths(made, column, id) {
    made.append(element("h3", {}, "Paths"));
    if (column.files_counted < column.files_known) {
      made.append(element("p", { class: "soft" }, `Counted in ${count(column.files_counted)} of ${files(column.files_known)}.`));
    }
    const filter = element("input", { type: "search", id: `${id}-filter` });
    made.append(element("label", { for: `${id}-filter` }, "Paths that contain ", filter));
    const list = table(`Paths of ${column.name}; shares and types from ${count(column.sampled_rows)} rows`, [
      { name: "path", code: true, clip: "path", value: (each) => each.path },
      { name: "column", clip: "value", value: (each) => each.type },
      { name: "rows", number: true, value: (each) => percent(each.share) },
      { name: "types", clip: "value", value: types },
      { name: "in columns", number: true, value: (each) => count(each.typed) },
      { name: "in residuals", number: true, value: (each) => count(each.residuals) },
      { name: "bytes", number: true, value: (each) => percent(each.bytes_share) },
      { name: "distinct", number: true, value: (each) => (each.distinct ? count(each.distinct) + (each.distinct_is_more ? "+" : "") : "") },
      { name: "least", code: true, clip: "value", value: (each) => each.minimum || "" },
      { name: "most", code: true, clip: "value", value: (each) => each.maximum || "" },
      { name: "examples", code: true, clip: "value", value: (each) => (each.examples || []).join(", ") },
    ], column.paths);
    filter.addEventListener("input", () => {
      const text = filter.value.toLowerCase();
      list.replaceRows(column.paths.filter((each) => each.path.toLowerCase().includes(text)));
    });
    made.append(list);
  }

  // Compares as the engine does: strings by code points, numbers by value.
  function compare(path, left, right) {
    if (path.numeric) return left - right;
    const a = Array.from(left);
    const b = Array.from(right);
    for (let place = 0; place < Math.min(a.length, b.length); place += 1) {
      const difference = a[place].codePointAt(0) - b[place].codePointAt(0);
      if (difference) return difference;
    }
    return a.length - b.length;
  }

  const bare = (label) => (label.startsWith('"') ? label.replace(/^"|"$/g, "") : label);

  // The place of a value among the sorted bounds: a whole number on a bound, a half between two.
  function placeOf(path, keys, wanted) {
    let low = 0;
    let high = keys.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (compare(path, keys[middle], wanted) < 0) low = middle + 1;
      else high = middle;
    }
    return low < keys.length && compare(path, keys[low], wanted) === 0 ? low : low - 0.5;
  }

  const READS = {
    "=": (place, low, high) => low <= place && place <= high,
    "<": (place, low) => low < place,
    "<=": (place, low) => low <= place,
    ">": (place, low, high) => high > place,
    ">=": (place, low, high) => high >= place,
  };

  function strips(canvas, path, wanted) {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.max(Math.round(canvas.clientWidth * ratio), 1);
    const rows = path.low.length;
    const height = Math.min(Math.max(rows * 4, 40), 320);
    canvas.style.height = `${height}px`;
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    const width = canvas.width / Math.max(path.labels.length, 1);
    const [hits, others] = [style.getPropertyValue("--warn"), style.getPropertyValue("--mark")];
    // Sorted once: a table may have 100,000 files, and each key that is typed draws them anew.
    path.order ||= path.low.map((_, row) => row).sort((a, b) => path.low[a] - path.low[b] || path.high[a] - path.high[b]);
    const tall = Math.max(canvas.height / rows, 1);
    path.order.forEach((row, place) => {
      const unknown = path.low[row] < 0;
      const hit = unknown || (wanted && wanted(row));
      context.fillStyle = wanted && hit ? hits : others;
      const left = unknown ? 0 : path.low[row] * width;
      const right = unknown ? canvas.width : (path.high[row] + 1) * width;
      context.globalAlpha = unknown ? 0.25 : 1;
      context.fillRect(left, (place * canvas.height) / rows, Math.max(right - left, 1), Math.max(tall - 1, 0.75));
    });
  }

  function skipPower(made, column, id) {
    if (!column.skip.length) return;
    made.append(
      element("h3", {}, "What filters skip"),
      element("p", { class: "soft" }, "Each stripe is a file, from its least to its greatest value, in ascending order. Short stripes that hardly overlap let a filter skip files."),
    );
    const choice = element("select", { id: `${id}-path` });
    column.skip.forEach((path, place) => {
      const read = path.read < 10 ? path.read.toFixed(1) : count(Math.round(path.read));
      choice.append(element("option", { value: place }, `${path.path} (${path.type}): = reads ${read} of ${count(path.low.length)} on average`));
    });
    const operator = element("select", { id: `${id}-operator` });
    for (const name of Object.keys(READS)) operator.append(element("option", {}, name));
    const value = element("input", { id: `${id}-value`, type: "text", autocomplete: "off" });
    const answer = element("output", { for: `${id}-path ${id}-operator ${id}-value`, "aria-live": "polite" });
    const canvas = element("canvas", { role: "img" });
    const ends = element("p", { class: "ends", "aria-hidden": "true" });
    made.append(
      element("label", { for: `${id}-path` }, "Path ", choice),
      element("label", { for: `${id}-operator` }, "Comparison ", operator),
      element("label", { for: `${id}-value` }, "Value ", value),
      answer,
      canvas,
      ends,
    );
    function update() {
      const path = column.skip[Number(choice.value)];
      const total = path.low.length;
      const keys = (path.keys ||= path.labels.map((label) => (path.numeric ? Number(label) : bare(label))));
      const text = value.value.trim();
      const wanted = path.numeric ? Number(text) : bare(text);
      let reads = null;
      if (text === "") {
        answer.textContent = `Without a filter all ${files(total)} are read.`;
      } else if (path.numeric && Number.isNaN(wanted)) {
        answer.textContent = "This path holds numbers: enter one.";
      } else {
        const place = placeOf(path, keys, wanted);
        reads = (row) => path.low[row] < 0 || READS[operator.value](place, path.low[row], path.high[row]);
        let read = 0;
        for (let row = 0; row < total; row += 1) read += reads(row) ? 1 : 0;
        answer.textContent = `${path.path} ${operator.value} ${text} would read ${count(read)} of ${files(total)}.`;
      }
      canvas.setAttribute("aria-label", `Bounds of ${path.path} in ${files(total)}, from ${path.labels[0]} to ${path.labels[path.labels.length - 1]}`);
      const outer = [path.labels[0], path.labels[path.labels.length - 1]];
      ends.replaceChildren(...outer.map((label) => element("span", { class: "clip", title: label }, label)));
      strips(canvas, path, reads);
    }
    for (const control of [choice, operator, value]) control.addEventListener("input", update);
    addEventListener("resize", update);
    update();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", update);
  }

  // The versions that brought some files, as far as the log still tells.
  function came(files) {
    if (files.last_version === null) return "older versions";
    if (files.first_version === files.last_version) return `version ${count(files.last_version)}`;
    return `versions ${files.first_version === null ? "before" : count(files.first_version)} to ${count(files.last_version)}`;
  }

  function drift(made, column) {
    if (!column.drift.length) return;
    const all = column.drift;
    const last = all[all.length - 1];
    made.append(
      element("h3", {}, "Share of values in residuals"),
      line(`Share of values in residuals by version: ${percent(all[0].share)} at first, ${percent(last.share)} at the end`,
        all.map((each) => each.share), [came(all[0]), came(last)], percent),
      element("p", {}, `${percent(all[0].share)} in the oldest files, ${percent(last.share)} in the newest. The files have ${column.layouts === 1 ? "one layout" : `${count(column.layouts)} layouts`}.`),
    );
  }

  function advice(made, column) {
    made.append(element("h3", {}, "Advice for the shredding schema"));
    if (!column.advice.length) {
      made.append(element("p", { class: "good" }, "The rows that were looked at fit the columns."));
      return;
    }
    const words = { add: "make a column", "give up": "give the column up" };
    made.append(table("What a new schema would change; `variantlake reshred` learns it", [
      { name: "path", code: true, clip: "path", value: (each) => each.path },
      { name: "advice", value: (each) => words[each.advice] },
      { name: "type", value: (each) => each.type },
      { name: "a query reads less", number: true, value: (each) => (each.saves_bytes ? size(each.saves_bytes) : "") },
      { name: "of the text", number: true, value: (each) => (each.text_share ? percent(each.text_share) : "") },
      { name: "why", wide: true, value: (each) => each.why },
    ], column.advice));
    made.append(element("details", {}, element("summary", {}, "The schema that would be learned"), element("p", {}, element("code", {}, column.inferred))));
  }

  // The command stands below the sentence: on a narrow screen a column of its own would be out of sight.
  function finding(each) {
    const made = element("div", {}, each.message);
    if (each.command) made.append(element("div", {}, "helped by ", element("code", {}, each.command)));
    return made;
  }

  function health() {
    if (!data.health) return;
    const made = section("health", "Health");
    if (!data.health.length) {
      made.append(element("p", { class: "good" }, "Nothing to do."));
      return;
    }
    made.append(table("Findings, each with what helps", [
      { name: "severity", class: (each) => (each.severity === "warning" ? "warning" : "soft"), value: (each) => each.severity },
      { name: "finding", value: finding },
    ], data.health));
  }

  function query() {
    if (!data.query) return;
    const asked = data.query;
    const made = section("query", "The query");
    made.append(
      element("p", {}, element("code", {}, asked.sql)),
      element("p", {}, `${count(asked.read)} of ${files(asked.files.length)} are read, ${size(asked.bytes_read)} of ${size(asked.bytes)}.`),
      table("Conditions, and the files that each one skips", [
        { name: "condition", code: true, value: (each) => each.predicate },
        { name: "files", number: true, value: (each) => count(each.files) },
      ], asked.skipped_by),
      table("Files", [
        { name: "", whole: true, value: (each) => (each.skipped_by === null ? "read" : "skipped by") },
        { name: "condition", code: true, whole: true, value: (each) => each.skipped_by || "" },
        { name: "size", number: true, value: (each) => size(each.bytes) },
        { name: "file", code: true, whole: true, value: (each) => each.file },
      ], asked.files),
    );
  }

  document.title = `Report on ${data.name || data.location}`;
  document.getElementById("title").textContent = data.name || data.location.replace(/\/+$/, "").split("/").pop();
  document.getElementById("where").textContent = data.location;
  document.getElementById("made").textContent = `Made by variantlake ${data.made_by}; format ${data.format} of the report.`;
  query();
  overview();
  health();
  versions();
  data.columns.forEach((column, place) => {
    const id = `column-${place}`;
    const made = section(id, `Column ${column.name}`);
    skipPower(made, column, id);
    drift(made, column);
    advice(made, column);
    paths(made, column, id);
  });
})();
