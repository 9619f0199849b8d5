// Whatever breaks, a tool never runs on the host instead. `touch marker` in the working directory would show it.
import assert from "node:assert/strict";
import { cpSync, readdirSync } from "node:fs";
import test from "node:test";
import { event, EXTENSION, existsSync, files, join, mkdirSync, place, play, PI_HOME, program, start, textOf, writeFileSync } from "./rig.mjs";

const ALL = ["--tools", "bash,read,write,edit,ls,find,grep,powershell"];
const EVERY = [
	["bash", { command: "touch marker" }], ["write", { path: "marker", content: "x" }], ["edit", { path: "a.txt", edits: [{ oldText: "here", newText: "x" }] }],
	["read", { path: "a.txt" }], ["ls", {}], ["find", { pattern: "*" }], ["grep", { pattern: "here" }], ["powershell", { command: "touch marker" }],
];

function fresh(t) {
	const at = place(t);
	files(at.work, { "a.txt": "here\n" });
	return at;
}

/** All tools fail in these words, and nothing has happened. */
async function allRefuse(at, words, options) {
	const all = await play(at, EVERY, { args: ALL, ...options });
	for (const one of all) {
		assert.equal(one.isError, true, one.name);
		assert.match(one.text, one.name === "powershell" ? /no PowerShell/ : words, one.name);
		assert.doesNotMatch(one.text, /^here/m);
	}
	untouched(at);
	return all;
}

function untouched(at) {
	assert.deepEqual(readdirSync(at.work), ["a.txt"]);
}

test("a missing program, wrong settings", async (t) => {
	const at = fresh(t);
	await allRefuse(at, /^kern: program_not_found/, { env: { KERN_SIDECAR: "/no/such/program" } });
	files(at.agent, { "kern.json": '{"memoryMb": -1}' });
	await allRefuse(at, /kern\.json: memoryMb: a whole number above 0 wanted, not -1/);
});

test("a sidecar that ends at once", async (t) => {
	const at = fresh(t);
	await allRefuse(at, /^kern: (sidecar_lost|internal)/, { env: { KERN_SIDECAR: program(join(at.top, "dead"), "#!/bin/sh\nexit 3\n") } });
});

test("a working directory that may not be in a box", async (t) => {
	const at = fresh(t);
	await allRefuse(at, /^kern: (mount_refused|workspace)/, { env: { HOME: at.work } });
});

test("an installation whose package of the sidecar cannot be loaded", async (t) => {
	const at = fresh(t);
	const copy = join(at.top, "kern-pi");
	cpSync(EXTENSION, copy, { recursive: true });
	files(copy, { "node_modules/kern-sandbox/package.json": '{"main": "index.js"}', "node_modules/kern-sandbox/index.js": 'throw new Error("half of it is missing");' });
	await allRefuse(at, /half of it is missing/, { kern: false, extensions: [copy] });
});

test("every handler throws: the tools are ours, ! is refused", async (t) => {
	const at = fresh(t);
	const wrapped = join(at.top, "throws.ts");
	writeFileSync(wrapped, `import kern from ${JSON.stringify(join(EXTENSION, "src/index.ts"))};
export default (pi) => kern(new Proxy(pi, { get: (all, name) => name === "on" ? (event) => all.on(event, () => { throw new Error("broken " + event); }) : all[name] }));\n`);
	const all = await play(at, [["bash", { command: "touch marker" }], ["ls", {}]], { kern: false, extensions: [wrapped], args: ALL });
	for (const one of all) assert.match(one.text, /broken tool_call/);
	untouched(at);

	const run = start(at, [], { kern: false, extensions: [wrapped], mode: ["--mode", "rpc"], prompt: "" });
	t.after(() => run.child.kill("SIGKILL"));
	run.send({ id: "1", type: "bash", command: "touch marker" });
	assert.equal((await event(run, (one) => one.id === "1", "the answer")).success, false);
	run.child.stdin.end();
	await run.ended;
	untouched(at);
});

const OTHER = (how) => `export default (pi) => {
	const tool = { name: "bash", label: "bash", description: "another", parameters: { type: "object", properties: {} }, execute: async () => ({ content: [{ type: "text", text: "on the host" }], details: undefined }) };
	${how};
};\n`;

test("another extension with a tool of the same name", async (t) => {
	const at = fresh(t);
	const early = join(at.top, "early.ts");
	const late = join(at.top, "late.ts");
	writeFileSync(early, OTHER("pi.registerTool(tool)"));
	writeFileSync(late, OTHER('pi.on("session_start", () => pi.registerTool(tool))'));
	const refused = start(at, [{ text: "never" }], { extensions: [early] });
	assert.notEqual((await refused.ended).code, 0);
	assert.match(refused.err, /conflicts with/);

	const [blocked] = await play(at, [["bash", { command: "touch marker" }]], { before: [late] });
	assert.equal(blocked.isError, true);
	assert.match(blocked.text, /belongs to .*late\.ts and would not run in the sandbox/);

	const [theirs, ours] = await play(at, [["bash", {}], ["read", { path: "/etc/hostname" }]], { extensions: [early], env: { KERN_PI_OFF: "bash" } });
	assert.equal(theirs.text, "on the host");
	assert.match(ours.text, /EACCES/);
	untouched(at);
});

test("-nbt: without the extension there are no tools, with it there are ours; codemode goes through them", async (t) => {
	const at = fresh(t);
	const [none] = await play(at, [["bash", { command: "touch marker" }]], { kern: false, args: ["-nbt"] });
	assert.match(none.text, /not found/);
	untouched(at);
	const [ours] = await play(at, [["bash", { command: `cat ${at.secret}; echo boxed` }]], { args: ["-nbt"] });
	assert.match(ours.text, /No such file[^]*boxed/);
	const [code] = await play(at, [["codemode", { code: `const r = await tools.bash({ command: "cat ${at.secret}; echo boxed" }); text(JSON.stringify(r));` }]], { extensions: ["builtin:codemode"], args: ["--tools", "+codemode"] });
	assert.match(code.text, /No such file[^]*boxed/);
});

test("the SDK: directories of sessions in one process, each with its own box", async (t) => {
	const { createAgentSession, DefaultResourceLoader, ModelRuntime, SessionManager, SettingsManager } = await import(join(PI_HOME, "dist/index.js"));
	const { fauxAssistantMessage, fauxProvider, fauxToolCall } = await import(join(PI_HOME, "node_modules/@earendil-works/pi-ai/dist/index.js")).catch(() => import(join(PI_HOME, "../pi-ai/dist/index.js")));
	const at = place(t);
	async function session(cwd, calls) {
		const settingsManager = SettingsManager.inMemory();
		const resourceLoader = new DefaultResourceLoader({ cwd, agentDir: at.agent, settingsManager, noExtensions: true, additionalExtensionPaths: [EXTENSION] });
		await resourceLoader.reload();
		const faux = fauxProvider({ provider: "faux", models: [{ id: "scripted" }] });
		faux.setResponses([...calls.map(([name, args]) => fauxAssistantMessage([fauxToolCall(name, args)], { stopReason: "toolUse" })), fauxAssistantMessage([], { stopReason: "stop" })]);
		const modelRuntime = await ModelRuntime.create({ authPath: join(at.agent, "auth.json"), modelsPath: null });
		modelRuntime.registerNativeProvider(faux.provider);
		const made = await createAgentSession({ cwd, agentDir: at.agent, modelRuntime, model: faux.getModel(), resourceLoader, sessionManager: SessionManager.inMemory(cwd), settingsManager, tools: ["read", "bash", "edit", "write", "grep", "find", "ls"] });
		await made.session.bindExtensions({});
		const texts = [];
		made.session.subscribe((one) => one.type === "tool_execution_end" && texts.push(textOf(one.result)));
		return { session: made.session, texts };
	}
	const all = await Promise.all(["one", "two"].map(async (name) => {
		const cwd = join(at.top, name);
		mkdirSync(cwd);
		files(cwd, { "a.txt": `${name}\n` });
		const { session: made, texts } = await session(cwd, [
			["bash", { command: `pwd; cat a.txt; cat ${join(at.top, name === "one" ? "two" : "one", "a.txt")}` }], ["read", { path: "a.txt" }], ["write", { path: "b.txt", content: "b" }],
			["edit", { path: "b.txt", edits: [{ oldText: "b", newText: `${name}!` }] }], ["grep", { pattern: "!" }], ["find", { pattern: "*.txt" }], ["ls", {}], ["read", { path: at.secret }],
		]);
		await made.prompt("go");
		made.dispose();
		return { name, cwd, texts };
	}));
	for (const { name, cwd, texts } of all) {
		assert.match(texts[0], new RegExp(`^${cwd}\\n${name}\\n.*No such file`));
		assert.equal(texts[1], `${name}\n`);
		assert.deepEqual(texts.slice(4, 7), [`b.txt:1: ${name}!`, "a.txt\nb.txt", "a.txt\nb.txt"]);
		assert.match(texts[7], /EACCES/);
		assert.ok(existsSync(join(cwd, "b.txt")));
	}
});
