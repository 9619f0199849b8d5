// grep and find: pi's own run programs of the host (rg, fd), which operations cannot redirect. So the tools are pi's by description,
// parameters and form of the answer, and the searching is the sidecar's.
import { relative } from "node:path";
import { createFindToolDefinition, createGrepToolDefinition, DEFAULT_MAX_BYTES, formatSize, truncateHead, truncateLine } from "@earendil-works/pi-coding-agent";
import type { protocol, Sandbox } from "kern-sandbox";
import type { Boxes } from "./boxes.ts";
import { fileError } from "./errors.ts";
import { absolutePath } from "./paths.ts";

const MOST_CONTEXT = 100; // of file/search
const MOST_RESULTS = 999_999;
const LINE_CHARS = 500;

const textOf = (line: protocol.Text) => (typeof line === "string" ? line : "base64" in line ? Buffer.from(line.base64, "base64").toString("utf8") : "");
const nameOf = (entry: { path?: string; pathBase64?: string }) => entry.path ?? Buffer.from(entry.pathBase64 ?? "", "base64").toString("utf8");
const limitOf = (limit: number | undefined, otherwise: number) => Math.min(MOST_RESULTS, Math.max(1, Math.floor(limit ?? otherwise)));

/** Lines as pi shows them: what fits, and notices of what does not. */
function answer(lines: string[], notices: string[], details: Record<string, unknown>) {
	const truncation = truncateHead(lines.join("\n"), { maxLines: Number.MAX_SAFE_INTEGER });
	if (truncation.truncated) {
		notices.splice(1, 0, `${formatSize(DEFAULT_MAX_BYTES)} limit reached`);
		details.truncation = truncation;
	}
	const text = notices.filter(Boolean).length > 0 ? `${truncation.content}\n\n[${notices.filter(Boolean).join(". ")}]` : truncation.content;
	return { content: [{ type: "text" as const, text }], details: Object.keys(details).length > 0 ? details : undefined };
}

const nothing = (text: string) => ({ content: [{ type: "text" as const, text }], details: undefined });

/** The sandbox, and what `path` is in it. */
async function look(boxes: Boxes, path: string, cwd: string, signal: AbortSignal | undefined) {
	if (signal?.aborted) throw new Error("Operation aborted");
	try {
		const box = await boxes.of(cwd);
		const { type } = await box.stat(path, { followLinks: true, ...(signal && { signal }) });
		return { box, type };
	} catch (error) {
		if ((error as { reason?: string }).reason === "not_found") throw new Error(`Path not found: ${path}`);
		throw fileError(error, "stat", path);
	}
}

/** Errors of a search for a model; an abort in pi's words. */
async function searching<T>(work: Promise<T>, path: string, signal: AbortSignal | undefined): Promise<T> {
	try {
		return await work;
	} catch (error) {
		throw signal?.aborted ? new Error("Operation aborted") : fileError(error, "open", path);
	}
}

type Line = { file: string; number: number; text: string; match: boolean };

/** Matches with what stands around them as rg prints it: each line once, in order; behind the last allowed match only its context. */
function linesOf(matches: protocol.FileMatch[], limit: number): Line[] {
	const lines: Line[] = [];
	const last = new Map<string, number>(); // the last line of each file that is out already
	const push = (file: string, number: number, text: string, match: boolean) => {
		if (number <= (last.get(file) ?? 0)) return;
		last.set(file, number);
		lines.push({ file, number, text, match });
	};
	const shown = matches.slice(0, limit);
	shown.forEach((one, index) => {
		const file = nameOf(one);
		const next = shown[index + 1];
		const end = next && nameOf(next) === file ? next.line : Number.POSITIVE_INFINITY;
		one.before.forEach((text, i) => push(file, one.line - one.before.length + i, text, false));
		push(file, one.line, textOf(one.text), true);
		one.after.forEach((text, i) => {
			if (one.line + 1 + i < end) push(file, one.line + 1 + i, text, false);
		});
	});
	return lines;
}

export function grepTool(boxes: Boxes) {
	const base = createGrepToolDefinition(process.cwd());
	return {
		...base,
		defaultActive: false,
		execute: (async (_id, { pattern, path, glob, ignoreCase, literal, context, limit }, signal, _onUpdate, ctx) => {
			const where = absolutePath(path || ".", ctx.cwd);
			const { box, type } = await look(boxes, where, ctx.cwd, signal);
			const most = limitOf(limit, 100);
			const around = context && context > 0 ? Math.min(Math.floor(context), MOST_CONTEXT) : 0;
			const { matches } = await searching(
				box.search(pattern, {
					path: where, regex: !literal, hidden: true, gitignore: true, limit: most + 1, before: around, after: around,
					...(ignoreCase && { ignoreCase }), ...(glob ? { glob: glob.replace(/^(!?)(?:\.\/)+/, "$1") } : {}), ...(signal && { signal }),
				}),
				where, signal,
			);
			if (matches.length === 0) return nothing("No matches found");
			let cut = false;
			const lines = linesOf(matches, most).map(({ file, number, text, match }) => {
				const { text: short, wasTruncated } = truncateLine(text.replace(/\r$/, ""));
				cut ||= wasTruncated;
				const name = type === "directory" ? relative(where, file) : file.slice(file.lastIndexOf("/") + 1);
				return match ? `${name}:${number}: ${short}` : `${name}-${number}- ${short}`;
			});
			const over = matches.length > most;
			return answer(
				lines,
				[over ? `${most} matches limit reached. Use limit=${most * 2} for more, or refine pattern` : "", cut ? `Some lines truncated to ${LINE_CHARS} chars. Use read tool to see full lines` : ""],
				{ ...(over ? { matchLimitReached: most } : {}), ...(cut ? { linesTruncated: true } : {}) },
			);
		}) as typeof base.execute,
	};
}

/** A pattern without capitals finds names with capitals, too, as with fd: each letter becomes a class of both. */
export function smartCase(pattern: string): string {
	if (pattern !== pattern.toLowerCase()) return pattern;
	let out = "";
	let inClass = false;
	for (let i = 0; i < pattern.length; i++) {
		const one = pattern[i] as string;
		const upper = one.toUpperCase();
		const letter = upper !== one && upper.length === one.length;
		if (one === "\\" && i + 1 < pattern.length) {
			out += one + pattern[++i];
		} else if (inClass) {
			const range = letter && pattern[i + 1] === "-" && pattern[i + 2] !== "]" && i + 2 < pattern.length;
			const end = range ? (pattern[i + 2] as string) : "";
			out += range ? `${one}-${end}${upper}-${end.toUpperCase()}` : letter ? one + upper : one;
			if (range) i += 2;
			inClass = one !== "]";
		} else {
			inClass = one === "[";
			out += letter ? `[${one}${upper}]` : one;
			if (inClass && (pattern[i + 1] === "!" || pattern[i + 1] === "^")) out += pattern[++i];
			if (inClass && pattern[i + 1] === "]") out += pattern[++i];
		}
	}
	return out;
}

async function namesOf(box: Sandbox, pattern: string, where: string, most: number, signal: AbortSignal | undefined): Promise<string[]> {
	const plain = pattern.startsWith(`${where}/`) ? pattern.slice(where.length) : pattern.replace(/^(?:\.\/)+/, "");
	const { entries } = await searching(
		box.glob(smartCase(plain), { path: where, hidden: true, gitignore: true, limit: most + 1, ...(signal && { signal }) }), where, signal);
	return entries.map((entry) => relative(where, nameOf(entry)) + (entry.type === "directory" ? "/" : ""));
}

export function findTool(boxes: Boxes) {
	const base = createFindToolDefinition(process.cwd());
	return {
		...base,
		defaultActive: false,
		execute: (async (_id, { pattern, path, limit }, signal, _onUpdate, ctx) => {
			const where = absolutePath(path || ".", ctx.cwd);
			const { box } = await look(boxes, where, ctx.cwd, signal);
			const most = limitOf(limit, 1000);
			const names = await namesOf(box, pattern, where, most, signal);
			if (names.length === 0) return nothing("No files found matching pattern");
			const over = names.length > most;
			return answer(names.slice(0, most), [over ? `${most} results limit reached. Use limit=${most * 2} for more, or refine pattern` : ""], {
				...(over && { resultLimitReached: most }),
			});
		}) as typeof base.execute,
	};
}
