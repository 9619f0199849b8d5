// kern.json and KERN_PI_*: what is taken, which one wins, and that everything wrong is named.
import assert from "node:assert/strict";
import { copyFileSync } from "node:fs";
import test from "node:test";
import { EXTENSION, files, join, place } from "./rig.mjs";

async function loader(t) {
	const at = place(t);
	const copy = join(at.top, "settings.mts"); // node takes no types off below node_modules
	copyFileSync(join(EXTENSION, "src/settings.ts"), copy);
	const { loadSettings, DEFAULTS } = await import(copy);
	return {
		DEFAULTS,
		load(json, env = {}) {
			if (json !== undefined) files(at.agent, { "kern.json": typeof json === "string" ? json : JSON.stringify(json) });
			return loadSettings(at.agent, env);
		},
	};
}

test("each setting from the file and from the environment, which wins", async (t) => {
	const { load, DEFAULTS } = await loader(t);
	assert.deepEqual(load(), DEFAULTS);
	const all = {
		image: "py", profiles: ["vcpu:heavy"], memoryMb: 64, cpus: 1.5, pids: 9, timeoutS: 0.5, maxTimeoutS: 7, maxOutputBytes: 1, network: true, egress: ["pypi.org"],
		env: [], images: false, mounts: { "/a": "/b", "/c": ["/d", "ro"] }, off: ["bash", "ls"],
	};
	assert.deepEqual(load(all), all);
	const env = {
		KERN_PI_IMAGE: "deb", KERN_PI_PROFILES: "a, b", KERN_PI_MEMORY_MB: "65", KERN_PI_CPUS: "0.25", KERN_PI_PIDS: "8", KERN_PI_TIMEOUT: "6", KERN_PI_MAX_TIMEOUT: "8", KERN_PI_MAX_OUTPUT: "2",
		KERN_PI_NETWORK: "0", KERN_PI_EGRESS: "x.org,y.org", KERN_PI_ENV: "A", KERN_PI_IMAGES: "on", KERN_PI_OFF: "grep",
	};
	assert.deepEqual(load(all, env), {
		...all, image: "deb", profiles: ["a", "b"], memoryMb: 65, cpus: 0.25, pids: 8, timeoutS: 6, maxTimeoutS: 8, maxOutputBytes: 2, network: false, egress: ["x.org", "y.org"],
		env: ["A"], images: true, off: ["grep"],
	});
});

test("what is wrong is named", async (t) => {
	const { load } = await loader(t);
	for (const [json, words] of [
		["{", /kern\.json: .*JSON/], ["[]", /an object wanted/], [{ memory: 1 }, /no setting memory; there are image, /], [{ memoryMb: 0 }, /memoryMb: a whole number above 0/], [{ memoryMb: 1.5 }, /memoryMb/],
		[{ cpus: "2" }, /cpus: a number above 0/], [{ image: "" }, /image: a text/], [{ network: "yes" }, /network: true or false/], [{ egress: "x" }, /egress: a list/], [{ env: [1] }, /env/],
		[{ off: ["shell"] }, /off: some of bash, /], [{ mounts: { a: "/b" } }, /mounts: /], [{ mounts: { "/a": ["/b", "rx"] } }, /mounts: /], [{ timeoutS: 9, maxTimeoutS: 8 }, /timeoutS 9 is above maxTimeoutS 8/],
	]) assert.throws(() => load(json), words, JSON.stringify(json));
	for (const [env, words] of [
		[{ KERN_PI_MEMORY: "1" }, /KERN_PI_MEMORY: there is no such setting/], [{ KERN_PI_MEMORY_MB: "many" }, /KERN_PI_MEMORY_MB: a whole number/], [{ KERN_PI_NETWORK: "maybe" }, /KERN_PI_NETWORK/],
		[{ KERN_PI_OFF: "bash,shell" }, /KERN_PI_OFF/], [{ KERN_PI_TIMEOUT: "-1" }, /KERN_PI_TIMEOUT/],
	]) assert.throws(() => load({}, env), words, JSON.stringify(env));
});
