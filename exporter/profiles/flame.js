// SPDX-License-Identifier: Apache-2.0
// Draws folded stacks (https://www.brendangregg.com/flamegraphs.html) as boxes, callers above what
// they call. All of it comes from the exporter that has served this page.
"use strict";

const ROW_PIXELS = 20;
const LEAST_SHARE = 0.0005; // of the page: what is narrower is left out
const FUNCTIONS = 20;
const UNITS = { profile: "samples", fault: "page faults" }; // else microseconds
const LEVELS = ["service", "thread pool", "state"]; // before the first frame

// Beside this page, also where a proxy has it below a path of its own; without the user and the
// password of its address, with which nothing may be asked.
const BASE = location.origin + location.pathname;

const at = (id) => document.getElementById(id);

/** A tree of {name, value, self, depth, parent, children}; children by name. */
function treeOf(folded) {
	const root = node("all", 0, null);
	let lost = 0;
	for (const line of folded.split("\n")) {
		const cut = line.lastIndexOf(" ");
		if (cut < 0) continue;
		const value = Number(line.slice(cut + 1));
		const names = line.slice(0, cut).split(";");
		if (names.length === 1) lost = value; // "[lost]"
		else add(root, names, value);
	}
	return { root, lost };
}

function node(name, depth, parent) {
	return { name, depth, parent, value: 0, self: 0, children: new Map() };
}

function add(root, names, value) {
	let one = root;
	one.value += value;
	for (const name of names) {
		if (!one.children.has(name)) one.children.set(name, node(name, one.depth + 1, one));
		one = one.children.get(name);
		one.value += value;
	}
	one.self += value;
}

const sorted = (one) =>
	[...one.children.values()].sort((a, b) => b.value - a.value || (a.name < b.name ? -1 : 1));

// --- drawing --------------------------------------------------------------------------------------

let taking = false;
const shown = { root: null, top: null, type: "profile", seconds: 0, boxes: new Map() };

function amount(value) {
	const unit = UNITS[shown.type];
	if (unit) return `${value} ${unit}`;
	const seconds = value / 1e6;
	return `${seconds < 1000 ? seconds.toPrecision(3) : seconds.toFixed(0)} s`;
}

const percent = (value, of) => `${((100 * value) / of).toFixed(1)} %`;

function describe(one) {
	const level = one.depth <= LEVELS.length && one.depth > 0 ? `${LEVELS[one.depth - 1]} ` : "";
	return `${level}${one.name}: ${amount(one.value)}, ${percent(one.value, shown.root.value)} of all`;
}

function kindOf(one) {
	if (one.depth <= LEVELS.length || one.name.startsWith("[")) return "other";
	return one.name.startsWith("sys_") ? "kernel" : "";
}

function boxAdd(graph, one, left, width, above) {
	const box = document.createElement("div");
	box.className = `box ${kindOf(one)}${above ? " above" : ""}`;
	box.style.left = `${100 * left}%`;
	box.style.width = `${100 * width}%`;
	box.style.top = `${one.depth * ROW_PIXELS}px`;
	box.textContent = one.name;
	box.tabIndex = -1;
	box.setAttribute("role", "treeitem");
	box.setAttribute("aria-level", one.depth + 1);
	box.setAttribute("aria-label", describe(one));
	box.one = one;
	shown.boxes.set(one, box);
	graph.append(box);
}

/** Draws @top as wide as the page, what is above it as well, and what is below in proportion. */
function draw(top) {
	const graph = document.createDocumentFragment();
	let deepest = top.depth;
	const below = (one, left, width) => {
		deepest = Math.max(deepest, one.depth);
		boxAdd(graph, one, left, width, false);
		for (const child of sorted(one)) {
			const share = width * (child.value / one.value);
			if (share >= LEAST_SHARE) below(child, left, share);
			left += share;
		}
	};
	shown.top = top;
	shown.boxes.clear();
	for (let one = top.parent; one; one = one.parent) boxAdd(graph, one, 0, 1, true);
	below(top, 0, 1);
	at("graph").replaceChildren(graph);
	at("graph").style.height = `${(deepest + 1) * ROW_PIXELS}px`;
	find();
	focus(top, false);
}

// --- moving about ---------------------------------------------------------------------------------

function focus(one, move = true) {
	const box = shown.boxes.get(one);
	if (!box) return;
	for (const other of shown.boxes.values()) other.tabIndex = -1;
	box.tabIndex = 0;
	at("place").textContent = describe(one);
	if (move) box.focus();
}

function zoom(one) {
	draw(one);
	focus(one);
}

/** The box beside @one in its row, @step to the right; of another caller as well. */
function beside(one, step) {
	const row = [...shown.boxes.keys()]
		.filter((other) => other.depth === one.depth)
		.sort((a, b) => parseFloat(shown.boxes.get(a).style.left) - parseFloat(shown.boxes.get(b).style.left));
	return row[row.indexOf(one) + step];
}

const MOVES = {
	ArrowUp: (one) => one.parent,
	ArrowDown: (one) => sorted(one)[0],
	ArrowLeft: (one) => beside(one, -1),
	ArrowRight: (one) => beside(one, 1),
	Home: () => shown.root,
};

function keyPressed(event) {
	const one = event.target.one;
	if (!one || event.altKey || event.ctrlKey || event.metaKey) return;
	const move = MOVES[event.key];
	if (move) {
		const next = move(one);
		if (next) focus(next);
	} else if (event.key === "Enter" || event.key === " ") {
		zoom(one);
	} else if (event.key === "Escape" && shown.top.parent) {
		const before = shown.top;
		draw(before.parent);
		focus(before);
	} else {
		return;
	}
	event.preventDefault();
}

/** Marks the functions that have the text that is sought, and says how much they and theirs are. */
function find() {
	const text = at("find").value;
	const has = (one) => text !== "" && one.depth > LEVELS.length && one.name.includes(text);
	const inside = (one) => {
		if (has(one)) return one.value;
		let sum = 0;
		for (const child of one.children.values()) sum += inside(child);
		return sum;
	};
	for (const [one, box] of shown.boxes) box.classList.toggle("found", has(one));
	if (!shown.root?.value) return;
	const share = text && `${percent(inside(shown.root), shown.root.value)} of all is in "${text}"`;
	at("share").textContent = share;
}

// --- functions ------------------------------------------------------------------------------------

/** By name: {self, total}; a function that calls itself is counted once. */
function functionsOf(root) {
	const found = new Map();
	const walk = (one, above) => {
		const frame = one.depth > LEVELS.length;
		const first = frame && !above.has(one.name);
		if (frame) {
			const row = found.get(one.name) ?? { self: 0, total: 0 };
			row.self += one.self;
			if (first) row.total += one.value;
			found.set(one.name, row);
		}
		if (first) above.add(one.name);
		for (const child of one.children.values()) walk(child, above);
		if (first) above.delete(one.name);
	};
	walk(root, new Set());
	return found;
}

function functionsShow(root) {
	const rows = [...functionsOf(root)].sort((a, b) => b[1].self - a[1].self).slice(0, FUNCTIONS);
	const body = document.createDocumentFragment();
	for (const [name, { self, total }] of rows) {
		const row = document.createElement("tr");
		const find = document.createElement("button");
		find.textContent = name;
		for (const content of [percent(self, root.value), percent(total, root.value), find]) {
			const cell = document.createElement("td");
			cell.append(content);
			row.append(cell);
		}
		body.append(row);
	}
	at("functions").tBodies[0].replaceChildren(body);
}

// --- asking ---------------------------------------------------------------------------------------

const say = (text) => {
	at("status").textContent = text;
};

function show(folded) {
	const { root, lost } = treeOf(folded);
	const losses = lost ? `; ${lost} of all services were lost` : "";
	shown.root = root;
	for (const id of ["graph", "place", "keys", "functions"]) at(id).hidden = root.value === 0;
	if (root.value === 0) {
		shown.boxes.clear();
		at("share").textContent = "";
		say(`Nothing was met in ${shown.seconds} s${losses}`);
		return;
	}
	draw(root);
	functionsShow(root);
	say(`${amount(root.value)} in ${shown.seconds} s${losses}`);
}

async function take(event) {
	event?.preventDefault();
	if (taking) return;
	const form = at("ask");
	const { workload, type, seconds } = Object.fromEntries(["workload", "type", "seconds"].map((name) => [name, form[name].value]));
	const query = new URLSearchParams({ seconds, format: "folded" });
	if (workload) query.set("workload", workload);
	history.replaceState(null, "", `?${new URLSearchParams({ workload, type, seconds })}`);
	taking = true;
	say(`For ${seconds} s …`);
	try {
		const answer = await fetch(new URL(`debug/pprof/${type}?${query}`, BASE));
		const text = await answer.text();
		if (!answer.ok) throw new Error(text);
		shown.type = type;
		shown.seconds = seconds;
		show(text);
	} catch (error) {
		say(`No profile: ${error.message}`);
	} finally {
		taking = false;
	}
}

/** The services that there are, and the one that the page was asked for. */
async function workloadsList(wanted) {
	const list = at("ask").workload;
	const answer = await fetch(new URL("debug/targets", BASE));
	const names = answer.ok ? (await answer.json()).map((target) => target.labels.service_name) : [];
	if (wanted && !names.includes(wanted)) names.unshift(wanted);
	for (const name of names) list.add(new Option(name, name));
	list.value = wanted;
}

async function begin() {
	const asked = new URLSearchParams(location.search);
	const form = at("ask");
	form.addEventListener("submit", take);
	at("find").addEventListener("input", find);
	at("functions").addEventListener("click", (event) => {
		if (event.target.tagName !== "BUTTON") return;
		at("find").value = event.target.textContent;
		find();
	});
	at("graph").addEventListener("keydown", keyPressed);
	at("graph").addEventListener("click", (event) => event.target.one && zoom(event.target.one));
	at("graph").addEventListener("focusin", (event) => event.target.one && focus(event.target.one, false));
	at("graph").addEventListener("pointerover", (event) => {
		if (event.target.one) at("place").textContent = describe(event.target.one);
	});
	for (const name of ["type", "seconds"]) if (asked.get(name)) form[name].value = asked.get(name);
	await workloadsList(asked.get("workload") ?? "");
	if (asked.has("workload")) take();
}

begin();
