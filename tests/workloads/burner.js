// SPDX-License-Identifier: Apache-2.0
// As burner.c, in JavaScript: main burns CPU time in three functions that call spin, and in a
// function of the library OpenSSL, which is not compiled while it runs.
//
// Commands: anything (most_ns, some_ns, least_ns, native_ns: CPU time of each), `quit`.
"use strict";

const crypto = require("crypto");
const net = require("net");
const readline = require("readline");

const ROUNDS = 2000000;
const HASHES = 20000;
const spent = { most: 0, some: 0, least: 0, native: 0 };

function spin(rounds) {
	let sum = 1;
	for (let i = 0; i < rounds; i++) {
		sum = (Math.imul(sum, 48271) + i) | 0;
	}
	return sum;
}

function burnMost() {
	return spin(6 * ROUNDS) + 1;
}

function burnSome() {
	return spin(3 * ROUNDS) + 2;
}

function burnLeast() {
	return spin(ROUNDS) + 3;
}

function burnNative() {
	return crypto.pbkdf2Sync("password", "salt", HASHES, 32, "sha256").length;
}

// CPU time of all threads: others have nothing to do.
function slice(name, burn) {
	const begin = process.cpuUsage();
	burn();
	const used = process.cpuUsage(begin);
	spent[name] += 1000 * (used.user + used.system);
}

function work() {
	slice("most", burnMost);
	slice("some", burnSome);
	slice("least", burnLeast);
	slice("native", burnNative);
	setImmediate(work);
}

const server = net.createServer().listen(0, "127.0.0.1", () => {
	console.log(`ready ${server.address().port}`);
	readline.createInterface({ input: process.stdin }).on("line", (line) => {
		if (line === "quit") {
			process.exit(0);
		}
		for (const name of Object.keys(spent)) {
			console.log(`${name}_ns ${spent[name]}`);
		}
		console.log("ok");
	});
	work();
});
