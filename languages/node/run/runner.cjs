// runner.cjs RESULT_FD: a kernel (kernel.cjs).
// runner.cjs RESULT_FD park: boots, and waits for the words below, which come over the channel with FILE itself.
// runner.cjs RESULT_FD NAME FILE ARGS...: runs FILE as node would run it in the working directory, and reports an error
// that nobody caught. FILE lies in a private directory; require, import and relative paths count from the working
// directory. README.md has the rules that it follows.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");
const Module = require("node:module");

let [, me, fdText, name, file, ...args] = process.argv;
const here = path.dirname(me) + path.sep;
const DISPLAY = 1, UPDATE = 2, CLEAR = 3, ERROR = 4, VALUE = 5, STATE = 6;
const PROMPT_BYTES = 4096; // the host shows no more

// ---- the result channel: frames out, acknowledgements in ----

const channel = { fd: Number(fdText), id: 0, call: 0, socket: identity(Number(fdText)) };

function identity(fd) {
	try {
		const found = fs.fstatSync(fd);
		return found.isSocket() ? `${found.dev}:${found.ino}` : undefined;
	} catch {
		return undefined;
	}
}

// libuv does not read again when a signal comes meanwhile.
function receive(buffer) {
	for (;;) {
		try {
			return fs.readSync(channel.fd, buffer);
		} catch (error) {
			if (error.code !== "EINTR")
				throw error;
		}
	}
}

function packed(parts) {
	const pieces = [];
	for (const [key, value] of parts) {
		const head = Buffer.alloc(6), data = Buffer.from(value);
		head.writeUInt16LE(key.length + 1, 0);
		head.writeUInt32LE(data.length, 2);
		pieces.push(head, Buffer.from(key + "\0"), data);
	}
	return Buffer.concat(pieces);
}

function write(type, data) {
	for (let offset = 0, size = 65536; offset === 0 || offset < data.length; offset += size) {
		const head = Buffer.alloc(24);
		head.write("KRN1");
		head[4] = 1;
		head[5] = type;
		head.writeUInt32LE(channel.call, 8);
		head.writeUInt32LE(channel.id, 12);
		head.writeUInt32LE(data.length, 16);
		head.writeUInt32LE(offset, 20);
		fs.writeSync(channel.fd, Buffer.concat([head, data.subarray(offset, offset + size)]));
	}
}

// The code may have closed it, and another file may have the number now.
function usable() {
	return channel.socket && identity(channel.fd) === channel.socket;
}

// Returns when the host has recorded the frame, after all that was printed before it. False: not sent.
function send(type, parts) {
	if (!usable())
		return false;
	const data = packed(parts), id = ++channel.id;
	try {
		write(type, data);
		const reply = Buffer.alloc(24);
		let length;
		while ((length = receive(reply)) === 24 && reply.readUInt32LE(12) !== id);
		if (length === 24)
			return true;
	} catch {}
	channel.socket = undefined;
	return false;
}

// A cell waits for a line of its stdin. No answer comes.
function announce(prompt) {
	if (!usable())
		return;
	channel.id++;
	write(STATE, packed([["input", Buffer.from(prompt).subarray(0, PROMPT_BYTES)]]));
}

// ---- what is needed less often lies in files of its own ----

const parts = {};

function part(name) {
	return parts[name] ??= require(here + name + ".cjs")(shared);
}

const lines = new Map(); // of the newest cells of a kernel, by their names
const shared = { DISPLAY, UPDATE, CLEAR, ERROR, VALUE, channel, send, receive, announce, part, described, here, lines, report: reportOfCell };

// On the global object until the code puts its own there.
function lend(name, get) {
	const set = (value) => Object.defineProperty(globalThis, name, { value, writable: true });
	Object.defineProperty(globalThis, name, { get, set, configurable: true, enumerable: false });
}

// ---- errors ----

// [line, column, file, function] of one line of a stack, or undefined for what is not the code's.
function position(line) {
	const found = /^\s+at (?:(.*) \()?(.*?):(\d+):(\d+)\)?$/.exec(line);
	if (!found || found[2].startsWith("node:") || found[2].startsWith(here))
		return undefined;
	let file = found[2];
	try {
		file = file.startsWith("file://") ? require("node:url").fileURLToPath(file) : file;
	} catch {}
	return [found[3], found[4], file, found[1] ?? ""];
}

function described(error) {
	try {
		if (error instanceof Error)
			return [String(error.name), String(error.message), String(error.stack), error.cause];
		return ["Error", String(error), "", undefined];
	} catch {
		return ["Error", "an exception that cannot be shown", "", undefined];
	}
}

function report(error, origin, shown) {
	shown.uncaught = true;
	const frames = described(error)[2].split("\n").map(position).filter(Boolean).slice(0, 90).reverse();
	let phase = origin === "unhandledRejection" && error !== shown.failure ? "unhandled_rejection" : "run";
	// An ES module is compiled after we have let go of it: then no line of its own is on the stack.
	if (shown.compiling || (error === shown.failure && error instanceof SyntaxError && frames.length === 0)) {
		phase = "compile";
		if (shown.line)
			frames.push([shown.line, 0, shown.name, ""]);
	}
	lines.set(shown.name, shown.source.split("\n"));
	sendError(error, phase, frames);
}

// SyntaxErrors of a cell have their place only in front of their stack.
function reportOfCell(error, phase, name, clean) {
	const frames = described(error)[2].split("\n").map(position).filter(Boolean).slice(0, 90).reverse();
	if (phase === "compile")
		frames.push([lineOf(error), 0, name, ""]);
	sendError(error, phase, frames, clean);
}

function sendError(error, phase, frames, clean = (stack) => stack) {
	const [title, message, stack, cause] = described(error);
	const parts = [["name", (title || "Error").slice(0, 256)], ["message", message.slice(0, 8192)], ["phase", phase]];
	for (const frame of frames) {
		const text = lines.get(frame[2])?.[frame[0] - 1] ?? "";
		const fields = [...frame, text].map((field) => String(field).replaceAll("\0", "").slice(0, 4096));
		parts.push(["frame", fields.join("\0")]);
	}
	if (stack)
		parts.push(["traceback", clean(stack).slice(0, 16384)]);
	for (let deep = 0, at = cause; at !== undefined && deep < 8; deep++) {
		const [name, text, , next] = described(at);
		parts.push(["cause", ""], ["name", (name || "Error").slice(0, 256)], ["message", text.slice(0, 8192)]);
		at = next;
	}
	send(ERROR, parts);
}

// ---- the code ----

// The line of a syntax error is only in the text in front of its stack: "NAME:LINE\n...".
function lineOf(error) {
	const found = /^.*:(\d+)\n/.exec(error.stack);
	return found ? Number(found[1]) : 0;
}

function withoutRunner(stack) {
	return stack.split("\n").filter((line) => !line.includes(here)).join("\n");
}

// Is it wrong only because it was read as CommonJS? V8's messages do not tell (an await in an argument list is a
// "missing )"), so: does it hold a static import or export, or does it compile where await is allowed?
function isModule(source) {
	if (/^\s*(import\s*["'{*\w]|export\s*[{*\w])|\bimport\.meta\b/m.test(source))
		return true;
	if (!/\bawait\b/.test(source))
		return false;
	try {
		new vm.Script(`(async () => {${source}\n})`);
		return true;
	} catch {
		return false;
	}
}

function asFunction(source, shown) {
	return vm.compileFunction(source, ["exports", "require", "module", "__filename", "__dirname"], {
		filename: shown.name,
		importModuleDynamically: vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER,
	});
}

// A last statement that prints has no value. To know more takes a parser, which costs a quarter of node's start.
function mayHaveValue(source) {
	const last = source.slice(source.lastIndexOf("\n", source.trimEnd().length - 1) + 1);
	return !/^\s*(console\.\w+\(.*\);?|\/\/.*)?\s*$/.test(last);
}

// The text that hands over the value of its last expression, or undefined.
function withValue(source) {
	if (!channel.socket || !fs.existsSync(here + "acorn.js") || !mayHaveValue(source))
		return undefined;
	const text = part("parse").withValue(source, "__kern_value");
	if (text !== undefined)
		lend("__kern_value", () => {
			delete globalThis.__kern_value;
			return { [Symbol.hasInstance]: (value) => { part("rich").value(value); return true; } };
		});
	return text;
}

function compile(source, shown) {
	const more = withValue(source);
	try {
		if (more !== undefined)
			return asFunction(more, shown);
	} catch {} // a module, or wrong: the text itself will tell
	try {
		return asFunction(source, shown);
	} catch (error) {
		if (!shown.script && isModule(source)) {
			shown.text = more;
			return undefined;
		}
		shown.line = lineOf(error);
		error.stack = withoutRunner(error.stack);
		throw error;
	}
}

function runScript(run, shown) {
	const main = new Module(shown.name, null);
	main.filename = shown.name;
	main.paths = Module._nodeModulePaths(process.cwd());
	process.mainModule = main;
	const require = Module.createRequire(shown.name);
	require.main = main;
	main.require = require;
	// A bound function in the next tick: no frame of ours is below the code's own, and ticks and promises that it
	// makes come in the same order as in a main script.
	process.nextTick(run.bind(main.exports, main.exports, require, main, file, process.cwd()));
}

// The module gets an address in the working directory while its source comes from FILE: node has only hooks for that.
function runModule(source, shown) {
	const { pathToFileURL } = require("node:url");
	const url = pathToFileURL(shown.name).href.replace("%5Bcode%5D", "[code]");
	globalThis.require ??= Module.createRequire(shown.name); // with await and require in one text, both work
	if (Module.registerHooks) {
		const found = { url, format: "module", source, shortCircuit: true };
		Module.registerHooks({
			resolve: (wanted, context, next) => (wanted === url ? found : next(wanted, context)),
			load: (wanted, context, next) => (wanted === url ? found : next(wanted, context)),
		});
	} else {
		const hooks = `let found;
export function initialize(data) { found = { ...data, format: "module", shortCircuit: true }; }
export function resolve(wanted, context, next) { return wanted === found.url ? found : next(wanted, context); }
export function load(wanted, context, next) { return wanted === found.url ? found : next(wanted, context); }`;
		Module.register("data:text/javascript," + encodeURIComponent(hooks), { data: { url, source } });
	}
	shown.compiling = false;
	let settled = false;
	// What is thrown stays unhandled, so that node prints it as ever.
	import(url).then(() => { settled = true; }, (error) => {
		settled = true;
		shown.failure = error;
		throw error;
	});
	process.on("beforeExit", () => {
		if (!settled)
			process.exitCode ??= 13; // as node says: an await at the top level that nothing can end
	});
}

// Writes to a pipe that is full are otherwise queued, and process.exit drops the queue.
function block(stream) {
	stream._handle?.setBlocking?.(true);
}

// The code gets an import() like any other's from a constant that node calls experimental, and its types are taken off by
// a function that node calls so. What node warns of there is not the code's business.
function withoutWarning() {
	const { emitWarning } = process;
	process.emitWarning = function (text, ...more) {
		if (!/^(vm\.USE_MAIN_CONTEXT_DEFAULT_LOADER|stripTypeScriptTypes) /.test(text))
			return Reflect.apply(emitWarning, this, [text, ...more]);
	};
}

// What the end of the process would still do: work in the pool, addons of the code, files of node's own.
function endsQuietly() {
	const waits = process.getActiveResourcesInfo().some((kind) => !["Timeout", "Immediate", "PipeWrap", "TTYWrap"].includes(kind));
	return !waits && !process.execArgv.length && !process.env.NODE_OPTIONS && !process.env.NODE_V8_COVERAGE &&
		!Object.keys(Module._cache).some((name) => name.endsWith(".node"));
}

// Behind the last listener of "exit" the status is known, and an error that nobody caught is not printed yet: the host need not wait until the kernel has taken node's memory apart.
function tellTheEnd(shown) {
	const { emit } = process;
	const value = function (event, ...more) {
		const listened = Reflect.apply(emit, this, [event, ...more]);
		const status = process.exitCode ?? 0;
		if (event === "exit" && this === process && !shown.uncaught && Number.isInteger(status) && usable() && endsQuietly()) {
			channel.id++;
			write(STATE, packed([["exit", String(status & 255)]]));
		}
		return listened;
	};
	Object.defineProperty(process, "emit", { value, writable: true, configurable: true, enumerable: false });
}

// Types become blanks, so that lines and columns stay.
function withoutTypes(source, shown) {
	if (!Module.stripTypeScriptTypes) {
		const error = new Error(`TypeScript needs node 22.13 or later; this is node ${process.versions.node}`);
		error.name = "Unsupported";
		error.stack = `${error.name}: ${error.message}`;
		throw error;
	}
	try {
		return Module.stripTypeScriptTypes(source);
	} catch (error) {
		shown.line = lineOf(error);
		error.stack = withoutRunner(error.stack);
		throw error;
	}
}

// Does what the start of a call would have done with its words -> those of its command line.
function take(rest, flag) {
	const words = [];
	while (rest.length > 0) {
		const keyEnd = 6 + rest.readUInt16LE(0), end = keyEnd + rest.readUInt32LE(2);
		const key = rest.toString("latin1", 6, keyEnd - 1), value = rest.subarray(keyEnd, end);
		rest = rest.subarray(end);
		if (key === "word") {
			words.push(value.toString());
		} else if (key === "env") {
			const at = value.indexOf("="), name = value.toString("utf8", 0, at);
			delete process.env[name]; // behind the others, as a new environment has it
			process.env[name] = value.toString("utf8", at + 1);
		} else if (key === "file") {
			const at = value.indexOf(0);
			fs.writeFileSync(value.toString("utf8", 0, at), value.subarray(at + 1), { flag, mode: 0o644 });
		}
	}
	return words;
}

// What a call runs through is compiled when it runs for the first time: two milliseconds, which are spent before there is one.
// Nothing of it stays.
function rehearse() {
	const { Writable } = require("node:stream"), line = "console.log(await 1)", shown = { name: path.resolve("[park]"), source: line };
	new console.Console(new Writable({ write: (chunk, encoding, done) => done() })).log(1, "");
	process.stdout.write(""); // to a pipe: nothing
	take(packed([["word", line], ["env", "KERN_PARK=1"], ["file", "/dev/null\0"]]), "w");
	delete process.env.KERN_PARK;
	fs.readFileSync("/dev/null", "utf8");
	mayHaveValue(line);
	isModule(line);
	const main = new Module(shown.name, null);
	main.paths = Module._nodeModulePaths(process.cwd());
	Module.createRequire(shown.name);
	process.nextTick(asFunction("", shown).bind(main.exports));
	process.emit("kern.park");
	endsQuietly();
}

// Waits for the words of a call.
function park() {
	rehearse();
	const message = Buffer.alloc(24 + 65536);
	write(STATE, packed([["ready", ""]]));
	const rest = message.subarray(24, receive(message));
	if (rest.length === 0)
		process.reallyExit(0); // nobody wants it
	channel.id = 1;
	write(STATE, packed([["begun", ""]]));
	const words = take(rest, "wx");
	[, me, fdText, name, file, ...args] = words;
	process.argv = [process.argv[0], ...words.slice(1)];
}

function main() {
	block(process.stdout);
	block(process.stderr);
	lend("display", () => globalThis.display = part("rich").display);
	withoutWarning();
	if (name === "park" && file === undefined)
		park();
	if (file === undefined)
		part("kernel").start();
	else
		runFile();
}

function runFile() {
	const text = fs.readFileSync(file, "utf8");
	const extension = path.extname(file).replace("ts", "js");
	// Named like node's own [eval]: nothing in the working directory has this name.
	const typed = extension !== path.extname(file), suffix = typed ? "ts" : "js";
	const shown = { name: path.resolve(name || "[code]." + suffix), source: text, script: extension === ".cjs", compiling: true };
	process.argv = [process.argv[0], file, ...args];
	if (channel.socket) {
		process.on("uncaughtExceptionMonitor", (error, origin) => report(error, origin, shown));
		tellTheEnd(shown);
	}
	const source = typed ? withoutTypes(text, shown) : text;
	const run = extension === ".mjs" ? void (shown.text = withValue(source)) : compile(source, shown);
	if (run) {
		shown.compiling = false;
		runScript(run, shown);
	} else {
		if (!name)
			shown.name = path.resolve("[code].m" + suffix);
		runModule(shown.text ?? source, shown);
	}
}

main();
