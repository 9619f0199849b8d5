// The runner on the host's node, without a box: each rule of README.md. The result channel is a SOCK_SEQPACKET pair,
// which node cannot make: a few lines of python hold the host's end.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import Module from "node:module";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

// As it was built: with the parser, when npm could bring it.
const top = path.join(path.dirname(fileURLToPath(import.meta.url)), "..", "..");
const runner = path.join(top, "build", "languages", "node", "run", "runner.cjs");
const noParser = !fs.existsSync(path.join(path.dirname(runner), "acorn.js")) && "no npm when it was built";
const noTypes = !Module.stripTypeScriptTypes && `node ${process.version} cannot take types off`;
const root = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), "ks-node-"));
const work = path.join(root, "work"), codeDir = path.join(root, "code");
fs.mkdirSync(path.join(work, "node_modules", "pkg"), { recursive: true });
fs.mkdirSync(codeDir);
fs.writeFileSync(path.join(work, "node_modules", "pkg", "index.js"), "module.exports = { hi: 1 };\n");
fs.writeFileSync(path.join(work, "util.mjs"), "export let count = 0;\nexport function inc() { count++; }\n");
fs.writeFileSync(path.join(work, "old.js"), "exports.old = 6;\n");
process.on("exit", () => fs.rmSync(root, { recursive: true }));

const host = `
import json, os, socket, struct, subprocess, sys, threading
close_after = int(sys.argv[1])
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
argv = [a if a != "FD" else str(theirs.fileno()) for a in sys.argv[2:]]
p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                     pass_fds=[theirs.fileno()])
theirs.close()
frames, data, last, word = [], b"", 0, None
def pump():
    global data, last, word
    while True:
        d = ours.recv(24 + 65537)
        if not d: return
        magic, version, kind, flags, call, number, total, offset = struct.unpack_from("<4sBBHIIII", d)
        assert (magic, version, flags, call) == (b"KRN1", 1, 0, 0)
        if offset == 0:
            assert number > last
            last, data = number, b""
        assert offset == len(data) and number == last
        data += d[24:]
        if len(data) < total: continue
        parts, rest = [], data
        while rest:
            key_len, data_len = struct.unpack_from("<HI", rest)
            parts.append([rest[6:6 + key_len - 1].decode(), rest[6 + key_len:6 + key_len + data_len].decode("utf-8", "backslashreplace")])
            rest = rest[6 + key_len + data_len:]
        assert word is None
        if kind == 6:  # the last word: gets no acknowledgement
            word = parts
            continue
        frames.append([kind, parts])
        if close_after == len(frames): return ours.close()
        ours.send(struct.pack("<4sBBHIIII", b"KRN1", 1, 7, 0, call, number, 0, 0))
t = threading.Thread(target=pump); t.start()
out, err = p.communicate(timeout=60); t.join()
print(json.dumps(dict(status=p.returncode, out=out.decode(), err=err.decode(), frames=frames, word=word)))
`;

function run(code, { name = "", args = [], extension = ".js", fd = "FD", closeAfter = -1 } = {}) {
	const file = path.join(codeDir, "main" + extension);
	fs.writeFileSync(file, code);
	const argv = ["-c", host, String(closeAfter), process.execPath, runner, fd, name, file, ...args];
	const done = spawnSync("python3", argv, { cwd: work, encoding: "utf8", maxBuffer: 1 << 26 });
	assert.equal(done.status, 0, done.stderr);
	return JSON.parse(done.stdout);
}

// What node alone makes of the same code as a file of the working directory.
function bare(code, extension) {
	const file = path.join(work, "bare" + extension);
	fs.writeFileSync(file, code);
	const done = spawnSync(process.execPath, [file], { cwd: work, encoding: "utf8", maxBuffer: 1 << 26 });
	fs.unlinkSync(file);
	return done;
}

function error(done) {
	const found = done.frames.filter(([kind]) => kind === 4);
	assert.equal(found.length, 1);
	return found[0][1];
}

const value = (parts, key) => parts.find(([k]) => k === key)?.[1];
const frames = (parts) => parts.filter(([k]) => k === "frame").map(([, v]) => v.split("\0"));

test("require, import, arguments and the names of a CommonJS module", () => {
	const done = run("console.log(require('pkg').hi, require('./old').old, require.main === module, this === exports);" +
		"console.log(JSON.stringify([__filename, __dirname, process.argv.slice(1)]));" +
		"import('./util.mjs').then((m) => console.log(Object.keys(m)))", { args: ["-a", "b"] });
	const file = path.join(codeDir, "main.js");
	assert.deepEqual(done, { status: 0, err: "", frames: [], word: [["exit", "0"]],
		out: `1 6 true true\n${JSON.stringify([file, work, [file, "-a", "b"]])}\n[ 'count', 'inc' ]\n` });
});

test("ES modules are found by their syntax or their name", () => {
	for (const [code, options] of [
		["import { count, inc } from './util.mjs'; import p from 'pkg'; inc(); console.log(count, p.hi)", {}],
		["export const x = 1; import p from 'pkg'; console.log(1, p.hi)", {}],
		["console.log(await Promise.resolve(1), require('pkg').hi)", {}],
		["for await (const x of ['1 1']) console.log(x)", {}],
		["const f = async () => 1; if (true) { console.log(...[await f(), await f()]) }", {}],
		["import('./util.mjs'); const x = [1, 1]; console.log(x.join(' ')); // await", {}],
		["console.log(this === undefined ? '1 1' : 'not a module')", { extension: ".mjs" }],
	]) {
		const done = run(code, options);
		assert.deepEqual([done.status, done.out, done.err], [0, "1 1\n", ""], code);
	}
	assert.match(run("const a = await 1;\nlet b = ;").err, /SyntaxError/);
	const done = run("import fs from 'node:fs'", { extension: ".cjs" });
	assert.equal(done.status, 1);
	assert.match(done.err, /SyntaxError: Cannot use import statement outside a module/);
	assert.equal(run("console.log(import.meta.url)").out, `file://${work}/[code].mjs\n`);
});

test("output, exit codes and signals are those of bare node", () => {
	for (const [code, extension] of [
		["process.exit(300)", ".js"], ["process.exitCode = 3", ".js"], ["return 5", ".js"], ["", ".js"],
		["console.log('a'); console.error('b')", ".js"],
		["process.kill(process.pid, 'SIGTERM'); setTimeout(() => {}, 1000)", ".js"],
		["process.nextTick(() => console.log(1)); Promise.resolve().then(() => console.log(2));" +
			"setImmediate(() => console.log(3))", ".js"],
		["await new Promise(() => {})", ".mjs"], ["process.exit()", ".mjs"],
		["process.on('exit', (c) => console.log(c))", ".js"],
		["'use strict'; console.log((function () { return this })())", ".js"],
		["console.log(require('fs').readFileSync(0, 'utf8').length)", ".js"],
	]) {
		const want = bare(code, extension), done = run(code, { extension: extension === ".mjs" ? ".mjs" : ".js" });
		assert.equal(done.status, want.signal ? -os.constants.signals[want.signal] : want.status, code);
		assert.equal(done.out, want.stdout, code);
		if (want.status !== 13)
			assert.equal(done.err, want.stderr, code);
	}
});

test("process.exit loses nothing that was written", () => {
	const done = run("process.stdout.write('x'.repeat(3000000)); process.stderr.write('y'.repeat(300000)); process.exit(0)");
	assert.deepEqual([done.out.length, done.err.length], [3000000, 300000]);
});

test("an error: node's own text, and a frame with the code's frames", () => {
	const done = run("\nfunction f() {\n  null.x;\n}\nconsole.log('out');\nf();\n");
	const name = path.join(work, "[code].js");
	assert.deepEqual([done.status, done.out], [1, "out\n"]);
	const message = "Cannot read properties of null (reading 'x')";
	assert.ok(done.err.startsWith(`${name}:3\n  null.x;\n       ^\n\nTypeError: ${message}\n    at f (`));
	assert.ok(!done.err.includes("runner.cjs"));
	const parts = error(done);
	assert.deepEqual(parts.slice(0, 3), [["name", "TypeError"], ["message", message], ["phase", "run"]]);
	assert.deepEqual(frames(parts),
		[["6", "1", name, "Object.<anonymous>", "f();"], ["3", "8", name, "f", "  null.x;"]]);
	assert.ok(value(parts, "traceback").startsWith("TypeError: Cannot read"));
	const module = run("import fs from 'fs';\n\nthrow new RangeError('esm')");
	assert.ok(module.err.startsWith(
		`file://${work}/[code].mjs:3\nthrow new RangeError('esm')\n      ^\n\nRangeError: esm\n`));
	assert.equal(value(error(module), "phase"), "run");
	assert.deepEqual(frames(error(module))[0].slice(0, 3), ["3", "7", path.join(work, "[code].mjs")]);
});

test("errors of every kind", () => {
	assert.equal(value(error(run("throw 'str'")), "message"), "str");
	assert.equal(value(error(run("throw null")), "message"), "null");
	assert.equal(value(error(run("throw { toString() { throw 1 } }")), "message"), "an exception that cannot be shown");
	const chain = (code) => error(run(code)).filter(([key]) => ["cause", "name", "message"].includes(key)).map(([, text]) => String(text));
	assert.deepEqual(chain("throw new Error('x', { cause: new TypeError('c', { cause: 'text' }) })"),
		["Error", "x", "", "TypeError", "c", "", "Error", "text"]);
	assert.equal(chain("const e = new Error('x'); e.cause = e; throw e").length, 2 + 3 * 8);
	const rejected = run("Promise.reject(new Error('r'))");
	assert.deepEqual([rejected.status, value(error(rejected), "phase")], [1, "unhandled_rejection"]);
	const caught = run("process.on('uncaughtException', (e) => console.log('caught', e.message)); throw new Error('x')");
	assert.deepEqual([caught.status, caught.out], [0, "caught x\n"]);
});

test("a syntax error: nothing runs, the line is told", () => {
	const done = run("console.log('never');\nlet b = (2");
	assert.deepEqual([done.status, done.out], [1, ""]);
	assert.ok(!done.err.includes("runner.cjs"));
	const name = path.join(work, "[code].js");
	assert.ok(done.err.startsWith(`${name}:2\nlet b = (2\n`));
	assert.deepEqual([value(error(done), "name"), value(error(done), "phase")], ["SyntaxError", "compile"]);
	assert.deepEqual(frames(error(done)), [["2", "0", name, "", "let b = (2"]]);
	const module = run("import fs from 'fs';\nconsole.log('never');\nlet a = ;");
	assert.deepEqual([module.status, module.out, value(error(module), "phase")], [1, "", "compile"]);
	assert.match(module.err, /\[code\]\.mjs:3\nlet a = ;\n {8}\^\n\nSyntaxError: Unexpected token ';'\n/);
	assert.equal(value(error(run("JSON.parse('{')")), "phase"), "run");
});

test("the name that the caller gave", () => {
	const done = run("\nthrow new Error('x')", { name: "src/a.js" });
	assert.ok(done.err.startsWith(path.join(work, "src/a.js") + ":2\n"));
	assert.equal(frames(error(done))[0][2], path.join(work, "src/a.js"));
});

test("the channel closed by the host, by the code, replaced, absent", () => {
	assert.equal(run("console.log(1); throw new Error('x')", { closeAfter: 1 }).frames.length, 1);
	const find = "const fs = require('fs'); const fd = fs.readdirSync('/proc/self/fd').map(Number).find((n) => " +
		"{ try { return n > 2 && fs.fstatSync(n).isSocket() } catch { return false } });\n";
	const closed = run(find + "fs.closeSync(fd); throw new Error('x')");
	assert.deepEqual([closed.status, closed.frames], [1, []]);
	assert.match(closed.err, /Error: x/);
	const replaced = run(find + "fs.closeSync(fd); fs.openSync('mine', 'w'); throw new Error('x')");
	assert.deepEqual([replaced.status, replaced.frames, fs.readFileSync(path.join(work, "mine"), "utf8")], [1, [], ""]);
	const absent = run("throw new Error('x')", { fd: "-1" });
	assert.equal(absent.status, 1);
	assert.match(absent.err, /Error: x/);
});

test("workers can be made from __filename", () => {
	const done = run("const { Worker, isMainThread } = require('worker_threads');" +
		"if (isMainThread) new Worker(__filename); else console.log('worker')");
	assert.deepEqual([done.status, done.out], [0, "worker\n"]);
});

// ---- values

function shown(done, kind = 5) {
	return done.frames.filter(([k]) => k === kind).map(([, parts]) => Object.fromEntries(parts));
}

test("the value of the last expression", { skip: noParser }, () => {
	for (const [code, want] of [
		["1 + 1", "2"], ["const a = [1, 2];\na.map((x) => x * 2);", "[ 2, 4 ]"], ["'a' // the end", "'a'"], ["null", "null"],
		["let x;\nx = 5;", "5"], ["var a = 1\na === 1 ? 'yes' : 'no'", "'yes'"], ["1, 2", "2"], ["0 || 'b' ;; ", undefined],
		["0 || 'b'; /* end */", "'b'"], ["() => 1", "[Function (anonymous)]"], ["({ a: 1 })", "{ a: 1 }"],
		["if (true) 5", undefined], ["const q = 5", undefined], ["undefined", undefined], ["function f() {}", undefined],
		["'use strict'; const o = 1", undefined], ["console.log(1)", undefined], ["return 5", undefined], ["", undefined],
		["`a\nb`", "'a\\nb'"], ["Promise.resolve(7)", "7"], ["new Promise((f) => setTimeout(f, 20, 8))", "8"],
		["await Promise.resolve(9)", "9"], ["import fs from 'node:fs'\nconst x = await Promise.resolve(2)\nx", "2"],
		["export const z = 3;\nz", "3"], ["10n ** 20n", "100000000000000000000n"], ["#!/usr/bin/env node\n4", "4"],
		["async function f() { return 6 }\nf()", "6"], ["new (class A { b = 1 })", "A { b: 1 }"],
		["Object.create(null)", "[Object: null prototype] {}"], ["new Proxy({}, { get() { throw 1 } })", "{}"],
	]) {
		const done = run(code);
		assert.deepEqual([done.status, done.err], [0, ""], code);
		assert.deepEqual(shown(done).map((value) => value["text/plain"]), want === undefined ? [] : [want], code);
	}
});

test("the value comes behind what was printed, and errors are those of bare node", { skip: noParser }, () => {
	const wrong = ["null.x", "let a = 1;\n  null\n.x;", "JSON.parse('{')", "const f = () => { throw new Error('f') }\nf();",
		"Promise.reject(new Error('no'))", "async function main() { throw new TypeError('t') }\nmain()", "throw 'str'"];
	for (const code of wrong) {
		const want = bare(code, ".cjs"), done = run(code);
		assert.equal(done.status, 1);
		const message = (text) => text.split("\n    at ")[0].replace(/^.*(\[code\]\.js|bare\.cjs):/m, "FILE:");
		// the semicolon of the last expression is a blank
		assert.equal(message(done.err).replace(/;? *$/gm, ""), message(want.stderr).replace(/;? *$/gm, ""));
		assert.equal(shown(done).length, 0);
	}
});

test("plain objects are JSON, too; what JSON has no place for is told", { skip: noParser }, () => {
	const json = (code) => shown(run(code))[0];
	assert.equal(json("({ a: [1, 'x', null] })")["application/json"], '{"a":[1,"x",null]}');
	const odd = json("[NaN, 1 / 0, 12345678901234567890n]");
	assert.equal(odd["application/json"], '[null,null,"12345678901234567890"]');
	assert.deepEqual(JSON.parse(odd.metadata), { "application/json": { bigintReplaced: true, nanReplaced: true } });
	for (const code of ["const a = {}; a.a = a; a", "new Map()", "new Date(0)", "({ toJSON() { throw 1 } })", "5", "'x'",
		"let d = []; for (let i = 0; i < 1e5; i++) d = [d]; d"])
		assert.equal(json(code)["application/json"], undefined, code);
});

test("how values say they want to be shown", { skip: noParser }, () => {
	const symbol = 'Symbol.for("Jupyter.display")';
	const one = (code) => shown(run(code))[0];
	assert.equal(one(`({ [${symbol}]: () => ({ "text/html": "<b>" }) })`)["text/html"], "<b>");
	assert.equal(one(`class A { async [${symbol}]() { return { "text/html": "<i>" } } }\nnew A()`)["text/html"], "<i>");
	assert.equal(one("({ _toHtml() { return '<p>' } })")["text/html"], "<p>");
	assert.equal(one("({ _toMime() { return { 'application/x': { a: 1 } } } })")["application/x"], '{"a":1}');
	assert.equal(one("({ outerHTML: '<a>' })")["text/html"], "<a>");
	const bad = run(`({ [${symbol}]() { throw new Error("no") } })`);
	assert.deepEqual([value(error(bad), "message"), value(error(bad), "phase"), bad.status], ["no", "display", 0]);
	assert.match(shown(bad)[0]["text/plain"], /Jupyter.display/);
	const every = "const every = new Proxy(function () {}, { get: () => every, apply: () => every });\nevery";
	assert.deepEqual(Object.keys(shown(run(every))[0]), ["text/plain"]);
});

test("images by their first bytes", { skip: noParser }, () => {
	for (const [bytes, mime] of [["\\x89PNG\\r\\n\\x1a\\nrest", "image/png"], ["\\xff\\xd8\\xffrest", "image/jpeg"], ["GIF89arest", "image/gif"],
		["RIFF....WEBPrest", "image/webp"], ["<svg xmlns='x'></svg>", "image/svg+xml"], ["other", undefined]]) {
		for (const wrap of ["", "new Uint8Array"]) {
			const found = shown(run(`${wrap}(Buffer.from("${bytes}", "latin1"))`))[0];
			assert.deepEqual(Object.keys(found), [...(mime ? [mime] : []), "text/plain"]);
		}
	}
});

test("display", () => {
	const done = run("console.log('a'); display({ a: 1 }); console.log('b'); display(display.html`<b>${1 + 1}</b>`, { display_id: 'x' });" +
		"display(display.md`new`, { display_id: 'x', update: true }); display({ 'text/x': 'raw' }, { raw: true }); display.clear({ wait: true }); console.log(typeof globalThis.display)");
	assert.deepEqual([done.status, done.out, done.err], [0, "a\nb\nfunction\n", ""]);
	assert.deepEqual(done.frames.map(([kind]) => kind), [1, 1, 2, 1, 3]);
	assert.equal(shown(done, 1)[1]["text/html"], "<b>2</b>");
	assert.deepEqual([shown(done, 2)[0]["text/markdown"], shown(done, 2)[0].id], ["new", "x"]);
	assert.equal(run("display({ a: 1 })", { fd: "-1" }).out, "{ a: 1 }\n");
	assert.match(run("display(1, { update: true })").err, /needs the display_id/);
	assert.equal(run("function display() { return 'mine' }\nconsole.log(display())").out, "mine\n");
	assert.equal(run("globalThis.display = 1; console.log(display)").out, "1\n");
});

test("TypeScript where node can take the types off", { skip: noTypes }, () => {
	const done = run("const n: number = 20;\ninterface A { a: string }\nn * 2", { extension: ".ts" });
	assert.deepEqual([done.status, done.err], [0, ""]);
	if (!noParser)
		assert.equal(shown(done)[0]["text/plain"], "40");
	const wrong = run("type A = string;\nfunction f(x: A): void {\n  null.x; }\nf('');", { extension: ".ts" });
	assert.deepEqual(frames(error(wrong)).at(-1), ["3", "8", path.join(work, "[code].ts"), "f", "  null.x; }"]);
	const odd = run("enum A { B }", { extension: ".ts" });
	assert.deepEqual([odd.status, value(error(odd), "phase")], [1, "compile"]);
	assert.equal(run("import fs from 'fs';\nconst a: number = await 1;\nconsole.log(a)", { extension: ".mts" }).out, "1\n");
});

test("TypeScript where it cannot", { skip: !noTypes && "it can" }, () => {
	const done = run("const n: number = 1", { extension: ".ts" });
	assert.deepEqual([done.status, value(error(done), "name"), value(error(done), "phase")], [1, "Unsupported", "compile"]);
	assert.match(done.err, /TypeScript needs node 22.13 or later/);
});


test("the last word", () => {
	const word = (code, options) => run(code, options).word;
	assert.deepEqual(word("1"), [["exit", "0"]]);
	assert.deepEqual(word("process.exit(3)"), [["exit", "3"]]);
	assert.deepEqual(word("process.on('exit', () => { process.exitCode = 4 })"), [["exit", "4"]]);
	assert.deepEqual(word("await 1; process.exitCode = 5"), [["exit", "5"]]);
	assert.deepEqual(word("setTimeout(() => process.exit(6), 10); setInterval(() => {}, 1000)"), [["exit", "6"]]);
	// Not when the end has something left to do or to say.
	assert.equal(word("throw new Error('x')"), null);
	assert.equal(word("require('fs').writeFile('late', 'x'.repeat(1 << 22), () => {}); process.exit(0)"), null);
	assert.equal(word("process.env.NODE_V8_COVERAGE = 'x'"), null);
	assert.equal(word("require('module')._cache['/x/addon.node'] = {}"), null);
	assert.equal(word("process.kill(process.pid, 'SIGKILL')"), null);
});
