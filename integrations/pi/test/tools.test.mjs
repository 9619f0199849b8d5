// The tools of the model: what they reach, what they do not, and who serves them.
import assert from "node:assert/strict";
import test from "node:test";
import { existsSync, files, join, listening, mkdirSync, place, play, readFileSync, writeFileSync } from "./rig.mjs";

const ALL = ["--tools", "bash,read,write,edit,ls,find,grep"];

test("bash is in a box: no secret of the host, no keys, the working directory under its own path", async (t) => {
	const at = place(t);
	files(at.work, { "a.txt": "here\n" });
	const [secret, key, home, where, net, big] = await play(at, [
		["bash", { command: `cat ${at.secret}; cat ../secret.txt; ls ${at.top}` }],
		["bash", { command: "env; cat /proc/*/environ | tr '\\0' '\\n'" }],
		["bash", { command: "ls -A ~; echo in-home > ~/x && cat ~/x" }],
		["bash", { command: "pwd; cat a.txt; echo new > made.txt" }],
		["bash", { command: "cat /proc/net/dev | grep -c : ; (exec 3<>/dev/tcp/1.1.1.1/53) 2>&1" }],
		["bash", { command: `#${"x".repeat(200_000)}\necho long enough` }],
	], { env: { LANG: "C.UTF-8", KERN_PI_ENV: "LANG,GIVEN", GIVEN: "given", NOT_GIVEN: "not" } });
	assert.match(secret.text, /No such file/);
	assert.doesNotMatch(secret.text, /the host's secret|agent/);
	assert.doesNotMatch(key.text, /sk-the-hosts-key|NOT_GIVEN|PI_/);
	assert.match(key.text, /^GIVEN=given$/m);
	assert.match(home.text, /^in-home$/m);
	assert.equal(where.text, `${at.work}\nhere\n`);
	assert.equal(readFileSync(join(at.work, "made.txt"), "utf8"), "new\n");
	assert.match(net.text, /^1\n[^]*unreachable/);
	assert.equal(big.text, "long enough\n");
});

test("file tools stay inside, also behind links that a box has made, and start no box", async (t) => {
	const at = place(t);
	files(at.work, { "a.txt": "inside\n" });
	await play(at, [["bash", { command: `ln -s ${at.secret} leak; ln -s ${at.top} up; ln -s a.txt inside; ln -s ${at.work}/a.txt absolute` }]]);
	const { file, asked } = listening(at);
	const refused = [
		["read", { path: at.secret }], ["read", { path: "../secret.txt" }], ["read", { path: "leak" }], ["read", { path: "absolute" }], ["read", { path: "up/secret.txt" }], ["read", { path: "/etc/passwd" }], ["read", { path: "~/secret.txt" }],
		["read", { path: "/proc/self/environ" }], ["write", { path: at.secret, content: "x" }], ["write", { path: "leak", content: "x" }], ["write", { path: "up/new.txt", content: "x" }],
		["edit", { path: at.secret, edits: [{ oldText: "host", newText: "x" }] }], ["edit", { path: "leak", edits: [{ oldText: "host", newText: "x" }] }],
		["ls", { path: ".." }], ["ls", { path: "up" }], ["find", { pattern: "*", path: ".." }], ["find", { pattern: "*", path: "up" }], ["grep", { pattern: "secret", path: ".." }], ["grep", { pattern: "secret", path: "leak" }],
	];
	const allowed = [
		["read", { path: "inside" }], ["write", { path: "inside", content: "over\n" }], ["edit", { path: "inside", edits: [{ oldText: "over", newText: "edited" }] }],
		["ls", {}], ["find", { pattern: "*" }], ["grep", { pattern: "secret|edited" }], ["find", { pattern: "*", path: "none" }], ["write", { path: "a.txt/under", content: "x" }],
	];
	const all = await play(at, [...refused, ...allowed], { args: ALL, env: { HOME: at.top, KERN_SIDECAR: file } });
	for (const [i, call] of refused.entries()) {
		assert.equal(all[i].isError, true, JSON.stringify(call));
		assert.match(all[i].text, /EACCES|Path not found/, JSON.stringify(call));
		assert.doesNotMatch(all[i].text, /the host's secret|agent|root:/, JSON.stringify(call));
	}
	const [read, write, edit, ls, find, grep, none, under] = all.slice(refused.length);
	assert.deepEqual([read.text, write.isError, edit.isError], ["inside\n", false, false]);
	assert.equal(readFileSync(join(at.work, "a.txt"), "utf8"), "edited\n"); // through the link, which is still one
	assert.equal(ls.text, "a.txt\nabsolute\ninside\nleak\nup");
	assert.match(find.text, /a\.txt/);
	assert.equal(grep.text, "a.txt:1: edited");
	assert.match(none.text, /^Path not found/);
	assert.match(under.text, /^ENOTDIR/);
	assert.deepEqual([readFileSync(at.secret, "utf8"), existsSync(join(at.top, "new.txt"))], ["the host's secret\n", false]);
	assert.deepEqual([...new Set(asked())].filter((name) => !/^(file|session|blob)\/|^initialized?$|^(shutdown|exit)$/.test(name)), []);
	assert.ok(asked().filter((name) => name.startsWith("file/")).length > refused.length);
});

test("skills and pi's documentation can be read and not written; images are a matter of the settings", async (t) => {
	const at = place(t);
	files(at.agent, { "skills/greet/SKILL.md": "---\nname: greet\ndescription: Says hello\n---\nRun hello.sh\n", "skills/greet/hello.sh": "echo hello\n", "auth.json": "{}" });
	files(at.work, { "p.gif": Buffer.from("R0lGODlhAQABAAAAACwAAAAAAQABAAACADs=", "base64") });
	const skill = join(at.agent, "skills/greet");
	const docs = join(process.env.PI_HOME, "docs/skills.md");
	const [text, run, over, bash, auth, doc, image] = await play(at, [
		["read", { path: join(skill, "SKILL.md") }], ["bash", { command: `sh ${skill}/hello.sh` }], ["write", { path: join(skill, "hello.sh"), content: "x" }],
		["bash", { command: `echo x > ${skill}/hello.sh` }], ["read", { path: join(at.agent, "auth.json") }], ["read", { path: docs, limit: 1 }], ["read", { path: "p.gif" }],
	], { env: { KERN_PI_IMAGES: "0" } });
	assert.match(text.text, /Run hello\.sh/);
	assert.equal(run.text, "hello\n");
	assert.match(over.text, /EROFS/);
	assert.match(bash.text, /Read-only file system/);
	assert.match(auth.text, /EACCES/);
	assert.match(doc.text, /kill/i);
	assert.match(image.text, /images: false/);
});

test("a skill in a directory that never comes into a box is left out, and the tools go on", async (t) => {
	const at = place(t);
	files(at.top, { ".ssh/deploy/SKILL.md": "---\nname: deploy\ndescription: Deploys\n---\nkey\n", "work/a.txt": "a\n", "agent/skills/greet/SKILL.md": "---\nname: greet\ndescription: Says hello\n---\nhello\n" });
	const [ours, skill, other] = await play(at, [
		["bash", { command: "cat a.txt" }], ["read", { path: join(at.top, ".ssh/deploy/SKILL.md") }], ["read", { path: join(at.agent, "skills/greet/SKILL.md") }],
	], { args: ["--skill", join(at.top, ".ssh/deploy")], env: { HOME: at.top } });
	assert.equal(ours.text, "a\n");
	assert.match(skill.text, /EACCES/);
	assert.match(other.text, /hello/);
});

test("what a command has left out is in a file that can be read, and no other file beside it", async (t) => {
	const at = place(t);
	writeFileSync(join(at.top, "pi-bash-00112233aabbccdd.log"), "of another session\n");
	const [long, tail, other] = await play(at, [
		["bash", { command: "seq 1 20000" }], ["read", { path: "$SPILL", offset: 19_999 }], ["read", { path: join(at.top, "pi-bash-00112233aabbccdd.log") }],
	]);
	assert.match(long.text, /Full output: /);
	assert.match(tail.text, /^19999\n20000/);
	assert.match(other.text, /EACCES/);
});

test("more directories by the settings, egress and limits; the model is told", async (t) => {
	const at = place(t);
	mkdirSync(join(at.top, "data"));
	files(at.top, { "data/d.txt": "data\n" });
	files(at.agent, { "kern.json": JSON.stringify({ mounts: { [join(at.top, "data")]: ["/data", "ro"] }, memoryMb: 64, pids: 20 }) });
	const all = await play(at, [
		["bash", { command: "cat /data/d.txt; echo x > /data/y" }], ["read", { path: "/data/d.txt" }], ["bash", { command: "echo begun; head -c 500M /dev/zero | tail" }],
		["bash", { command: "echo begun; python3 -c 'import subprocess; [subprocess.Popen([\"sleep\", \"9\"]) for _ in range(40)]'" }],
	], { env: { KERN_PI_PIDS: "16" } });
	const [mount, read, oom, pids] = all;
	assert.match(mount.text, /^data\n[^]*Read-only/);
	assert.equal(read.text, "data\n");
	assert.match(oom.text, /begun\n[^]*\[kern\] oom/);
	assert.match(pids.text, /begun\n[^]*Resource temporarily unavailable/);
});
