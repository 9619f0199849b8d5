// Byte for byte what pi's own tools say, in a directory that is thrown away.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { rmSync, symlinkSync } from "node:fs";
import test from "node:test";
import { isDeepStrictEqual } from "node:util";
import { files, join, mkdirSync, place, play } from "./rig.mjs";

const PNG = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFklEQVR4nGP8z8DAwMDAxMDAwMDAAAANHQEDasKb6QAAAABJRU5ErkJggg==", "base64");
const ALL = ["--tools", "bash,read,write,edit,ls,find,grep"];
const have = (name) => {
	try {
		return execFileSync("sh", ["-c", `command -v ${name}`]).length > 0;
	} catch {
		return false;
	}
};

function fill(work) {
	rmSync(work, { recursive: true, force: true });
	mkdirSync(join(work, ".git"), { recursive: true }); // fd of Debian wants a repository for .gitignore
	files(work, {
		"a.txt": "one\ntwo\nthree\n", "no-end.txt": "x\ny", "empty.txt": "", "crlf.txt": "a\r\nb\r\nc\r\n", "bom.txt": "\ufeffstart\nend\n",
		"long.txt": Array.from({ length: 3000 }, (_, i) => `line ${i + 1}`).join("\n"), "wide.txt": `${"w".repeat(60_000)}\nnext\n`, "fat.txt": `${"é".repeat(600)} straw\n`.repeat(80),
		"src/App.ts": "const app = 1; // needle\n\n\nconst b = 2;\nneedle\nneedle again\nlast\n", "src/deep/app.test.ts": "needle\n", "src/.hidden": "needle\n",
		".gitignore": "ignored/\n*.log\n", "ignored/x.ts": "needle\n", "out.log": "needle\n", "it\u2019s.txt": "curly\n", "pixel.png": PNG, "fake.png": "no image\n",
		"zero.bin": Buffer.from([0x6e, 0x00, 0x6e, 0xff, 0x0a]), "[odd] (1).txt": "needle\n",
	});
	symlinkSync("a.txt", join(work, "link.txt"));
	symlinkSync("src", join(work, "dir-link"));
	symlinkSync("nowhere", join(work, "dangling"));
}

const FILES = (work) => [
	["read", { path: "a.txt" }], ["read", { path: join(work, "a.txt"), offset: 2 }], ["read", { path: "a.txt", offset: 2, limit: 1 }], ["read", { path: "a.txt", offset: 9 }],
	["read", { path: "a.txt", limit: -1 }], ["read", { path: "no-end.txt" }], ["read", { path: "empty.txt" }], ["read", { path: "crlf.txt" }], ["read", { path: "bom.txt" }],
	["read", { path: "long.txt" }], ["read", { path: "long.txt", offset: 2500 }], ["read", { path: "wide.txt" }], ["read", { path: "fat.txt" }], ["read", { path: "zero.bin" }],
	["read", { path: "it's.txt" }], ["read", { path: "@link.txt" }], ["read", { path: "src/../a.txt" }], ["read", { path: "nothing.txt" }], ["read", { path: "src" }],
	["read", { path: "a.txt/x" }], ["read", { path: "pixel.png" }], ["read", { path: "fake.png" }],
	["write", { path: "new/er/w.txt", content: "w\u2028é\n" }], ["read", { path: "new/er/w.txt" }], ["write", { path: "a.txt", content: "" }], ["write", { path: "src", content: "x" }],
	["edit", { path: "no-end.txt", edits: [{ oldText: "y", newText: "z" }] }], ["edit", { path: "crlf.txt", edits: [{ oldText: "a\nb", newText: "A\nB" }] }],
	["edit", { path: "bom.txt", edits: [{ oldText: "start", newText: "begin" }] }], ["edit", { path: "src/App.ts", edits: [{ oldText: "const app = 1;", newText: "const app = 2;" }, { oldText: "last", newText: "first" }] }],
	["edit", { path: "src/App.ts", edits: [{ oldText: "needle", newText: "x" }] }], ["edit", { path: "src/App.ts", edits: [{ oldText: "absent", newText: "x" }] }],
	["edit", { path: "nothing.txt", edits: [{ oldText: "a", newText: "b" }] }], ["edit", { path: "src", edits: [{ oldText: "a", newText: "b" }] }],
	["bash", { command: "cat crlf.txt bom.txt no-end.txt | od -c | head -8" }],
	["ls", {}], ["ls", { path: "src" }], ["ls", { path: "src", limit: 1 }], ["ls", { path: "nothing" }], ["ls", { path: "a.txt" }], ["ls", { path: "new/er/none" }], ["ls", { limit: 0 }],
];

const COMMANDS = [
	["bash", { command: "echo out; sleep 0.2; echo err >&2; sleep 0.2; echo more" }], ["bash", { command: "exit 7" }], ["bash", { command: "true" }], ["bash", { command: "kill -9 $$" }], ["bash", { command: "printf 'no end'" }],
	["bash", { command: "echo before; sleep 30", timeout: 1 }], ["bash", { command: "echo x", timeout: 0 }], ["bash", { command: "echo x", timeout: -3 }], ["bash", { command: "pwd; echo ${BASH_VERSION%%.*} $0" }],
	["bash", { command: "seq 1 5000" }], ["bash", { command: "head -c 120000 /dev/zero | tr '\\0' y" }], ["bash", { command: "printf '\\xff\\xc3\\xa9\\n'" }], ["bash", { command: "[[ a == a ]] && arr=(1 2) && echo ${#arr[@]}; cat" }],
	["bash", { command: "no_such_command_here" }], ["bash", { command: "if then" }], ["bash", { command: "set -e; false; echo no" }], ["bash", { command: "exit 3 & wait $!" }],
];

const SEARCHES = [
	["grep", { pattern: "needle" }], ["grep", { pattern: "needle", path: "src" }], ["grep", { pattern: "NEEDLE", ignoreCase: true, path: "src/App.ts" }], ["grep", { pattern: "needle", path: "src/App.ts", context: 1 }],
	["grep", { pattern: "needle", path: "src/App.ts", context: 2, limit: 2 }], ["grep", { pattern: "needle", path: "src/App.ts", limit: 2 }], ["grep", { pattern: "needle", path: "src/App.ts", limit: 1, context: 1 }],
	["grep", { pattern: "const \\w+ = \\d", path: "src" }], ["grep", { pattern: "app = 1;", literal: true }], ["grep", { pattern: "a.p", literal: true }], ["grep", { pattern: "nowhere to be found" }],
	["grep", { pattern: "needle", glob: "*.test.ts" }], ["grep", { pattern: "needle", glob: "!*.txt", path: "src" }], ["grep", { pattern: "needle", glob: "./deep/*.ts", path: "src" }], ["grep", { pattern: "x", path: "nothing" }], ["grep", { pattern: "--pre=x" }], ["grep", { pattern: "straw" }],
	["find", { pattern: "*.ts" }], ["find", { pattern: "app*" }], ["find", { pattern: "App*" }], ["find", { pattern: "src/*.ts" }], ["find", { pattern: "**/app.test.ts" }], ["find", { pattern: "src/**" }], ["find", { pattern: "*.{txt,png}" }],
	["find", { pattern: "[a-b]*.txt" }], ["find", { pattern: "deep" }], ["find", { pattern: "nothing*" }], ["find", { pattern: "*.ts", path: "src/deep" }], ["find", { pattern: "*", path: "src", limit: 2 }],
	["find", { pattern: ".hid*" }], ["find", { pattern: "\\[odd\\]*" }],
];

/** What may differ: names of files that pi makes, times, and the order in which rg and fd happen to find. */
function plain(result, sorted) {
	const text = result.text.replaceAll(/\/tmp\/[^\s\]]*pi-bash-[0-9a-f]+\.log/g, "SPILL");
	const details = JSON.parse(JSON.stringify(result.result.details ?? null).replaceAll(/"fullOutputPath":"[^"]+"/g, '"fullOutputPath":"SPILL"'));
	const structured = result.result.structuredContent;
	if (structured?.wall_time_seconds !== undefined) structured.wall_time_seconds = 0;
	if (structured?.full_output_path !== undefined) structured.full_output_path = "SPILL";
	const images = result.result.content.filter((one) => one.type === "image");
	return { text: sorted ? unordered(text) : text, isError: result.isError, details, structured, images };
}

/** Lines without their order; where a limit has cut, which ones are left is a matter of order, too. */
function unordered(text) {
	const lines = text.split("\n");
	return / limit reached/.test(text) ? [lines.length, lines.at(-1)] : lines.sort();
}

async function compare(t, calls, sorted = () => false, env = {}) {
	const at = place(t);
	fill(at.work);
	const theirs = await play(at, calls(at.work), { kern: false, args: ALL, env });
	fill(at.work);
	const ours = await play(at, calls(at.work), { args: ALL, env });
	const differences = calls(at.work).flatMap((call, i) => difference(call, plain(ours[i], sorted(call)), plain(theirs[i], sorted(call))));
	assert.equal(differences.join("\n"), "");
}

/** Where two results begin to differ, in few words: the whole would be far too long. */
function difference(call, ours, theirs) {
	if (isDeepStrictEqual(ours, theirs)) return [];
	const [mine, pis] = [ours, theirs].map((one) => JSON.stringify(one));
	let at = 0;
	while (mine[at] === pis[at]) at++;
	const part = (text) => text.slice(Math.max(0, at - 40), at + 160);
	return [`${JSON.stringify(call).slice(0, 200)}\n  ours   ${part(mine)}\n  theirs ${part(pis)}`];
}

test("read, write, edit, ls", { concurrency: true }, (t) => compare(t, FILES));
test("bash", (t) => compare(t, () => COMMANDS));
test("grep and find", { skip: !(have("rg") && (have("fd") || have("fdfind"))) && "there is no rg or no fd" }, (t) =>
	compare(t, () => SEARCHES, ([, args]) => args.context === undefined));
