// A model's path as an absolute one, by pi's rules, without a look at the host's files.
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const UNICODE_SPACES = /[\u00A0\u2000-\u200A\u202F\u205F\u3000]/g;

export function absolutePath(path: string, cwd: string): string {
	let plain = path.replace(UNICODE_SPACES, " ");
	if (plain.startsWith("@")) plain = plain.slice(1);
	if (plain === "~") return homedir();
	if (plain.startsWith("~/")) return join(homedir(), plain.slice(2));
	if (/^file:\/\//.test(plain)) return fileURLToPath(plain);
	return resolve(cwd, plain);
}

/** The names under which a file may lie that a model typed: as given, and as screenshots on a Mac are called. */
export function variants(path: string): string[] {
	const curly = (one: string) => one.replace(/'/g, "\u2019");
	const decomposed = path.normalize("NFD");
	return [...new Set([path, path.replace(/ (AM|PM)\./gi, "\u202F$1."), decomposed, curly(path), curly(decomposed)])];
}
