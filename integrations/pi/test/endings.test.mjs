// How commands end: by themselves, at a deadline, by an abort, with pi, with the sidecar. What they had written stays, they do not.
import assert from "node:assert/strict";
import test from "node:test";
import { alive, event, existsSync, files, join, place, play, readFileSync, results, sidecarsOf, start, textOf, until, withWord } from "./rig.mjs";

const RPC = { mode: ["--mode", "rpc"], prompt: "" };
const bash = (command, rest = {}) => ["bash", { command, ...rest }];

test("exits, signals, deadlines; a server lives as long as its command", async (t) => {
	const at = place(t);
	const word = `3${Math.floor(1e6 + Math.random() * 1e6)}`;
	const [exit, late, byDefault, most, left, server, after] = await play(at, [
		bash("echo out; exit 3"), bash("echo before; trap '' TERM; sleep 30; echo after", { timeout: 0.5 }), bash("echo before; sleep 30"), bash("echo before; sleep 30", { timeout: 86_400 }),
		bash(`sleep ${word} & setsid sh -c 'sleep ${word}; echo late' & (sleep ${word} & disown); echo started`),
		bash("python3 -m http.server 8123 >/dev/null 2>&1 & until (exec 3<>/dev/tcp/127.0.0.1/8123) 2>/dev/null; do sleep 0.05; done; echo up"),
		bash("(exec 3<>/dev/tcp/127.0.0.1/8123) 2>/dev/null || echo down"),
	], { env: { KERN_PI_TIMEOUT: "1", KERN_PI_MAX_TIMEOUT: "2" } });
	assert.match(exit.text, /^out\n[^]*exited with code 3/);
	for (const [one, seconds] of [[late, 0.5], [byDefault, 1], [most, 2]]) {
		assert.match(one.text, new RegExp(`^before\\n[^]*timed out after ${seconds} seconds`));
		assert.equal(one.isError, true);
	}
	assert.equal(left.text, "started\n");
	assert.equal(server.text, "up\n");
	assert.equal(after.text, "down\n");
	assert.deepEqual(withWord(word), []);
});

test("RPC: ! commands are in the box, can be aborted; an aborted turn keeps its output and nothing else", async (t) => {
	const at = place(t);
	const word = `4${Math.floor(1e6 + Math.random() * 1e6)}`;
	const run = start(at, [{ calls: [{ name: "bash", args: { command: `echo turn; sleep ${word}` } }] }, { calls: [{ name: "read", args: { path: "$SPILL", limit: 1 } }] }, { text: "done" }], RPC);
	t.after(() => run.child.kill("SIGKILL"));
	const answer = (id) => event(run, (one) => one.type === "response" && one.id === id, id);

	run.send({ id: "1", type: "bash", command: `cat ${at.secret}; echo key=$ANTHROPIC_API_KEY; pwd; exit 4` });
	const one = (await answer("1")).data;
	assert.match(one.output, new RegExp(`No such file[^]*key=\\n${at.work}\\n`));
	assert.equal(one.exitCode, 4);

	run.send({ id: "2", type: "bash", command: `echo long; sleep ${word}` });
	await until(() => withWord(word).length > 0, "the command");
	const begun = Date.now();
	run.send({ id: "abort", type: "abort_bash" });
	const two = (await answer("2")).data;
	assert.deepEqual([two.cancelled, /long/.test(two.output)], [true, true]);
	assert.ok(Date.now() - begun < 10_000);
	await until(() => withWord(word).length === 0, "the end of the command");

	run.send({ id: "3", type: "bash", command: "seq 1 9000" });
	assert.match((await answer("3")).data.fullOutputPath, /pi-bash-/);

	run.send({ id: "4", type: "prompt", message: "go" });
	await event(run, (e) => e.type === "tool_execution_update" && /turn/.test(textOf(e.partialResult)), "output");
	run.send({ id: "5", type: "abort" });
	const end = await event(run, (e) => e.type === "tool_execution_end", "the end of the tool");
	assert.match(textOf(end.result), /^turn\n[^]*aborted/);
	await until(() => withWord(word).length === 0, "the end of the command");
	await event(run, (e) => e.type === "agent_settled", "the end of the turn");

	run.send({ id: "6", type: "prompt", message: "on" });
	const read = await event(run, (e) => e.type === "tool_execution_end" && e.toolName === "read", "what ! has left out");
	assert.match(textOf(read.result), /^1\n/);
	await event(run, (e) => e.type === "agent_settled" && run.events.indexOf(e) > run.events.indexOf(read), "the second turn");
	run.send({ id: "7", type: "prompt", message: "/kern doctor" });
	await event(run, (e) => e.type === "extension_ui_request" && e.method === "notify" && /boxes start/.test(e.message), "the doctor");
	run.send({ id: "8", type: "prompt", message: "/kern" });
	await event(run, (e) => e.method === "notify" && /All tools are ours/.test(e.message), "/kern");
	run.child.stdin.end();
	await run.ended;
});

for (const [signal, mode] of [["SIGKILL", ["-p"]], ["SIGTERM", ["--mode", "json"]], ["SIGINT", ["-p"]]])
	test(`${signal} to pi (${mode.at(-1)}) ends the sidecar and the command`, async (t) => {
		const at = place(t);
		const word = `5${Math.floor(1e6 + Math.random() * 1e6)}`;
		const run = start(at, [{ calls: [{ name: "bash", args: { command: `echo begun > begun; sleep ${word}` } }] }, { text: "done" }], { mode });
		t.after(() => run.child.kill("SIGKILL"));
		await until(() => existsSync(join(at.work, "begun")), `the command (${run.err.slice(-300)})`);
		const [sidecar] = sidecarsOf(run.child.pid);
		assert.ok(alive(sidecar));
		run.child.kill(signal);
		await run.ended;
		await until(() => !alive(sidecar) && withWord(word).length === 0, "the end of all");
	});

test("print mode; the sidecar is killed during a command: its output stays, the loss is said, the next command has a new one", async (t) => {
	const at = place(t);
	files(at.work, { "a.txt": "a\n" });
	const run = start(at, [{ calls: [{ name: "bash", args: { command: "echo begun; touch begun; sleep 3000" } }] }, { calls: [{ name: "bash", args: { command: "cat a.txt; touch again" } }] }, { text: "the end of it" }]);
	t.after(() => run.child.kill("SIGKILL"));
	await event(run, (e) => e.type === "tool_execution_update" && /begun/.test(textOf(e.partialResult)), "output");
	process.kill(sidecarsOf(run.child.pid)[0], "SIGKILL");
	assert.equal((await run.ended).code, 0);
	const [lost, next] = results(run);
	assert.match(lost.text, /^begun\n[^]*\[kern\] sidecar_lost/);
	assert.equal(lost.isError, true);
	assert.equal(next.text, "a\n");
	assert.ok(existsSync(join(at.work, "again")));

	const print = start(at, [{ calls: [{ name: "write", args: { path: "p.txt", content: "printed" } }] }, { text: "the end of it" }], { mode: ["-p"] });
	assert.equal((await print.ended).code, 0);
	assert.equal(print.out.trim(), "the end of it");
	assert.equal(readFileSync(join(at.work, "p.txt"), "utf8"), "printed");
});
