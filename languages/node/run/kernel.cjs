// A kernel: cells come from kern-cells (../../programs/cells.c) as lines on descriptor 251, each with the paths of its
// output and its code; the answer is a line as well.
"use strict";
const fs = require("node:fs");
const net = require("node:net");
const path = require("node:path");
const util = require("node:util");
const vm = require("node:vm");
const Module = require("node:module");

const WORDS = 251, NAMES = 200, LATE_MS = 500;

class Interrupted extends Error {
	constructor() {
		super("the cell was interrupted");
		this.name = "Interrupted";
		this.stack = `${this.name}: ${this.message}`;
	}
}

module.exports = ({ VALUE, channel, receive, part, report, here, lines }) => {
	const parse = part("parse"), rich = part("rich"), input = part("input");
	const importModuleDynamically = vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER;
	const soon = setImmediate, now = performance.now.bind(performance);
	const exit = { name: "exit" }; // thrown by process.exit, which must not end the kernel
	let cell; // at work: { name, stdin, asked, stop(reason) }
	let watching = false; // an interrupt ends what is called now
	let lastValue;
	const taker = { value: undefined, [Symbol.hasInstance](value) { this.value = value; return true; } };

	function word(text) {
		fs.writeSync(WORDS, text + "\n");
	}

	// Node has no dup2: the lowest free descriptor is the one that was just closed.
	function redirect(fd, to, how) {
		try {
			fs.closeSync(fd);
		} catch {} // the code has
		if (fs.openSync(to, how) !== fd) {
			process._rawDebug("another thread took the descriptor of a stream");
			process.abort();
		}
	}

	// ---- errors ----

	// Without the frames below the cell's own, and without a line of ours that threw.
	function clean(text) {
		if (text.startsWith(here))
			text = text.slice(text.indexOf("\n\n") + 2);
		return text.split("\n").filter((line) => !/^\s+at /.test(line) || !(line.includes(here) || line.includes("node:vm:"))).join("\n");
	}

	function tell(error, phase) {
		let text;
		try {
			text = error instanceof Interrupted || phase === "compile" ? error.stack : error instanceof Error ? util.inspect(error) : `Uncaught ${util.inspect(error)}`;
		} catch {
			text = "Uncaught: an exception that cannot be shown";
		}
		process.stderr.write(clean(text) + "\n");
		report(error, phase, cell?.name ?? "", clean);
	}

	function stray(error, phase) {
		if (error === exit)
			cell?.stop(exit);
		else
			tell(error, phase);
	}

	// ---- one cell ----

	const outer = new vm.Script("globalThis[Symbol.for('kern.cell')]()", { filename: here + "outer" });

	// SIGINT ends f wherever it is.
	function sync(f) {
		globalThis[Symbol.for("kern.cell")] = f;
		try {
			return outer.runInThisContext({ breakOnSigint: true });
		} finally {
			delete globalThis[Symbol.for("kern.cell")];
		}
	}

	function compile(source, name) {
		const plan = parse.cell(source, "__kern_value");
		const options = { filename: name, importModuleDynamically };
		if (!plan.wrong) {
			try {
				return [new vm.Script(plan.text, { ...options, columnOffset: -plan.shift }), plan.names];
			} catch {} // it is wrong: the text itself will tell
		}
		try {
			return [new vm.Script(source, options), []];
		} catch (error) {
			// As a script it is wrong for its await or import already; the parser knows what else is.
			throw plan.wrong && /\b(await|import)\b/.test(source) ? syntaxError(plan.wrong, source, name) : error;
		}
	}

	function syntaxError({ message, loc }, source, name) {
		const error = new SyntaxError(message.replace(/ \(\d+:\d+\)$/, ""));
		const line = source.split("\n")[loc.line - 1] ?? "";
		error.stack = `${name}:${loc.line}\n${line}\n${" ".repeat(loc.column)}^\n\n${error.name}: ${error.message}`;
		return error;
	}

	function isInterrupt(error) {
		return error instanceof Interrupted || error?.code === "ERR_SCRIPT_EXECUTION_INTERRUPTED";
	}

	// Tells that an interrupt has to wait. Is one on its way?
	function pause() {
		word(`pause ${channel.call}`);
		const answer = Buffer.alloc(64);
		try {
			while (receive(answer) === 24 && answer.readUInt32LE(12) !== 0);
			return answer.readUInt32LE(20) > 0;
		} catch {
			return false; // the code has closed the channel
		}
	}

	// Calls f, which an interrupt ends wherever it is. It must not come while node begins or ends its watch: there it would
	// end the kernel, or the next thing that is watched.
	function watched(f) {
		return sync(() => {
			word(`begin ${channel.call}`);
			watching = true;
			try {
				return f();
			} finally {
				watching = false;
				if (pause())
					for (const end = now() + LATE_MS; now() < end;);
			}
		});
	}

	// The same wherever it is called.
	function patiently(f) {
		if (watching)
			return f();
		if (pause())
			throw new Interrupted(); // our listener hears of it, too
		try {
			return watched(f);
		} catch (error) {
			if (isInterrupt(error))
				cell.stop(error); // whatever the code makes of it
			throw error;
		} finally {
			word(`begin ${channel.call}`);
		}
	}

	async function awaited(promise) {
		let seen = false;
		const interrupted = new Promise((_, reject) => {
			cell.stop = (reason) => { seen = true; reject(reason); };
		});
		word(`begin ${channel.call}`);
		try {
			return await Promise.race([promise, interrupted]);
		} finally {
			if (pause())
				for (const end = now() + LATE_MS; !seen && now() < end;)
					await new Promise((go) => soon(go));
			cell.stop = () => {};
		}
	}

	// What f returns and, unless it is a promise, what showing it returns, which runs code of the value's own: under one watch, as
	// each is a thread of node's.
	function shown(f) {
		return watched(() => {
			const value = f();
			return [value, value === undefined || util.types.isPromise(value) ? undefined : rich.show(VALUE, value)];
		});
	}

	async function run(source, name) {
		let phase = "compile";
		try {
			input.begin(cell.stdin);
			const [script, names] = compile(source, name);
			for (const known of names)
				if (!(known in globalThis))
					globalThis[known] = undefined;
			taker.value = undefined;
			phase = "run";
			let [value, showing] = shown(() => script.runInThisContext());
			if (util.types.isPromise(value)) {
				value = await awaited(value);
				if (value !== undefined)
					[, showing] = shown(() => value);
			}
			if (util.types.isPromise(showing))
				await awaited(showing);
			if (value !== undefined && (!("_" in globalThis) || globalThis._ === lastValue))
				globalThis._ = lastValue = value;
			for (let open; (open = input.untilAnswered());)
				await awaited(open);
			return "ok";
		} catch (error) {
			if (error === exit || cell.asked !== undefined)
				return "ok";
			const stopped = isInterrupt(error);
			tell(stopped ? new Interrupted() : error, phase);
			return stopped ? "interrupted" : "error";
		}
	}

	function onInterrupt() {
		cell?.stop(new Interrupted());
	}

	function guard() { // code may have taken them away
		process.removeListener("SIGINT", onInterrupt);
		process.on("SIGINT", onInterrupt);
		process.exit = (code) => {
			if (!cell)
				return;
			cell.asked = Number(code ?? process.exitCode ?? 0) & 255;
			cell.stop(exit);
			throw exit;
		};
	}

	async function serve(line) {
		const [, number, stdin, out, err, code, name] = /^cell (\d+) (\S+) (\S+) (\S+) (\S+) (.*)$/.exec(line);
		const mayAsk = stdin !== "-";
		if (mayAsk)
			redirect(0, stdin, "r");
		redirect(1, out, "w");
		redirect(2, err, "w");
		const source = fs.readFileSync(code, "utf8").replace(/^\ufeff/, "");
		channel.call = Number(number);
		lines.set(name, source.split("\n"));
		if (lines.size > NAMES)
			lines.delete(lines.keys().next().value);
		guard();
		cell = { name, stdin: mayAsk ? stdin : undefined, stop: () => {} };
		const status = await run(source, name);
		input.end();
		if (mayAsk)
			redirect(0, "/dev/null", "r");
		await new Promise((go) => soon(go)); // node tells of rejections that nobody handles before that
		const { asked } = cell;
		cell = undefined;
		word(`done ${number} ${status}${asked === undefined ? "" : ` ${asked}`}`);
	}

	// ---- all of them ----

	function start() {
		const place = path.resolve("[kernel].js"), main = new Module(place, null);
		main.filename = place;
		main.paths = Module._nodeModulePaths(process.cwd());
		const require = Module.createRequire(place);
		require.main = main;
		main.require = require;
		Object.assign(globalThis, { require, module: main, exports: main.exports, __filename: place, __dirname: process.cwd() });
		Object.defineProperty(globalThis, "__kern_value", { value: taker });
		process.argv = [process.argv[0]];
		process.on("unhandledRejection", (error) => stray(error, "unhandled_rejection"));
		process.on("uncaughtException", (error) => stray(error, "run"));
		process.on("SIGTERM", () => {}); // it is for what the cell has started
		input.adopt(patiently);
		guard();
		let rest = "", queue = Promise.resolve();
		const words = new net.Socket({ fd: WORDS });
		words.setEncoding("utf8");
		words.on("data", (data) => {
			const found = (rest + data).split("\n");
			rest = found.pop();
			for (const line of found)
				queue = queue.then(() => serve(line));
		});
		words.on("close", () => process.reallyExit(0));
		word("ready");
	}

	return { start };
};
