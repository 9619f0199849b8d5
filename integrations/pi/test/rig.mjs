// The real pi, driven by a script instead of a model. PI_HOME is its package; kern-pi is where npm installed it.
import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
export const EXTENSION = realpathSync(join(here, "../node_modules/kern-pi"));
const FAUX = join(here, "faux.ts");
export const PI_HOME = process.env.PI_HOME;
const PI_CLI = join(PI_HOME, "dist/bundle/cli.js");

export async function until(condition, what, seconds = 60) {
	for (const end = Date.now() + seconds * 1000; ; ) {
		const found = await condition();
		if (found) return found;
		if (Date.now() > end) throw new Error(`${what} did not come within ${seconds} s`);
		await new Promise((resolve) => setTimeout(resolve, 20));
	}
}

export function alive(pid) {
	try {
		return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
	} catch {
		return false;
	}
}

/** Pids of processes one of whose arguments is or contains this word. */
export function withWord(word) {
	return readdirSync("/proc").filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid).map(Number).filter((pid) => {
		try {
			return alive(pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(word);
		} catch {
			return false;
		}
	});
}

/** Pids of sidecars whose parent is this process. */
export function sidecarsOf(parent) {
	return withWord("kern-sidecar\0--stdio").filter((pid) => {
		try {
			return new RegExp(`^PPid:\\s+${parent}$`, "m").test(readFileSync(`/proc/${pid}/status`, "utf8"));
		} catch {
			return false; // one of somebody else, which has ended
		}
	});
}

/** A directory of a test: `work` to be in, `agent` for pi's own files, `secret` beside them. */
export function place(t) {
	const top = realpathSync(mkdtempSync(join(tmpdir(), "kern-pi-test-")));
	t.after(() => rmSync(top, { recursive: true, force: true }));
	const at = { top, work: join(top, "work"), agent: join(top, "agent"), secret: join(top, "secret.txt") };
	mkdirSync(at.work);
	mkdirSync(at.agent);
	writeFileSync(at.secret, "the host's secret\n");
	return at;
}

export function files(directory, contents) {
	for (const [name, content] of Object.entries(contents)) {
		mkdirSync(dirname(join(directory, name)), { recursive: true });
		writeFileSync(join(directory, name), content);
	}
}

export function program(path, text) {
	writeFileSync(path, text);
	chmodSync(path, 0o755);
	return path;
}

/** Starts pi. `kern: false` is pi as it is. */
export function start(at, script, { args = [], env = {}, kern = true, mode = ["--mode", "json"], extensions = [], before = [], prompt = "go" } = {}) {
	const file = join(at.top, `script-${Math.random().toString(36).slice(2)}.json`);
	writeFileSync(file, JSON.stringify(script));
	const given = [...before, ...(kern ? [EXTENSION] : []), FAUX, ...extensions].flatMap((one) => ["-e", one]);
	const words = [PI_CLI, "-ne", ...given, "--model", "faux/scripted", "--no-session", ...mode, ...args, ...(prompt ? [prompt] : [])];
	const child = spawn(process.execPath, words, {
		cwd: at.work,
		env: { ...process.env, PI_OFFLINE: "1", PI_CODING_AGENT_DIR: at.agent, FAUX_SCRIPT: file, ANTHROPIC_API_KEY: "sk-the-hosts-key", ...env },
		stdio: ["pipe", "pipe", "pipe"],
	});
	const run = { child, out: "", err: "", events: [] };
	let rest = "";
	child.stdout.setEncoding("utf8");
	child.stdout.on("data", (chunk) => {
		run.out += chunk;
		const lines = (rest + chunk).split("\n");
		rest = lines.pop();
		for (const line of lines) if (line.startsWith("{")) run.events.push(JSON.parse(line));
	});
	child.stderr.on("data", (chunk) => { run.err += chunk; });
	run.ended = new Promise((resolve) => child.on("close", (code, signal) => resolve({ code, signal })));
	run.send = (message) => child.stdin.write(`${JSON.stringify(message)}\n`);
	if (!mode.includes("rpc")) child.stdin.end();
	return run;
}

export const textOf = (result) => result.content.filter((one) => one.type === "text").map((one) => one.text).join("");

/** Results of tools in the order of their calls. */
export function results(run) {
	const order = run.events.filter((event) => event.type === "tool_execution_start").map((event) => event.toolCallId);
	return order.map((id) => {
		const end = run.events.find((event) => event.type === "tool_execution_end" && event.toolCallId === id);
		return end && { name: end.toolName, text: textOf(end.result), isError: end.isError, result: end.result };
	});
}

/** Plays calls, one message each, and gives their results. */
export async function play(at, calls, options) {
	const run = start(at, [...calls.map(([name, args]) => ({ calls: [{ name, args }] })), { text: "done" }], options);
	const ended = await run.ended;
	if (ended.code !== 0) throw new Error(`pi ended with ${JSON.stringify(ended)}: ${run.err.slice(-2000)}`);
	return Object.assign(results(run), { run });
}

/** A sidecar that writes down what it is asked: { program, asked() -> names of methods in order }. */
export function listening(at) {
	const log = join(at.top, "asked");
	const real = join(here, "../node_modules/kern-sandbox/program/kern-sidecar");
	const file = program(join(at.top, "listening"), `#!/bin/sh\ntee -a '${log}' | '${real}' "$@"\n`);
	return { file, asked: () => readFileSync(log, "utf8").trim().split("\n").map((line) => JSON.parse(line).method) };
}

/** Waits for an event of a run that fits. */
export const event = (run, fits, what) => until(() => run.events.find(fits), `${what} (${run.err.slice(-500)})`);

export { existsSync, readFileSync, writeFileSync, mkdirSync, join };
