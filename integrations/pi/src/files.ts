// read, write, edit and ls: pi's own tools on the file methods of the sidecar, which start no box.
import { randomUUID } from "node:crypto";
import { basename } from "node:path";
import { createEditToolDefinition, createLsToolDefinition, createReadToolDefinition, createWriteToolDefinition, type ExtensionAPI } from "@earendil-works/pi-coding-agent";
import type { Sandbox } from "kern-sandbox";
import type { Boxes } from "./boxes.ts";
import { fileError } from "./errors.ts";
import { imageType, SNIFF_BYTES } from "./images.ts";
import { absolutePath, variants } from "./paths.ts";
import { isSpill, spillOperations } from "./spills.ts";

const PAGE_BYTES = 512 * 1024;

type Signal = AbortSignal | undefined;
const options = (signal: Signal) => ({ followLinks: true, ...(signal && { signal }) });

/** The operations that read, edit and write share, on one sandbox and for one call. */
function operations(box: Sandbox, signal: Signal) {
	const guard = async <T>(call: string, path: string, work: Promise<T>): Promise<T> => work.catch((error) => Promise.reject(fileError(error, call, path)));
	const page = (path: string, offset: number, length: number) => guard("open", path, box.readFile(path, { ...options(signal), offset, length }));
	return {
		page,
		async access(path: string): Promise<void> {
			const { type, etag } = await guard("access", path, box.stat(path, options(signal)));
			if (type === "file" && etag === undefined) throw fileError({ reason: "permission_denied" }, "access", path);
		},
		async readFile(path: string): Promise<Buffer> {
			const { type } = await guard("open", path, box.stat(path, options(signal)));
			if (type === "directory") throw fileError({ reason: "is_directory" }, "read", path);
			return guard("open", path, box.readFile(path, options(signal)));
		},
		async writeFile(path: string, content: string): Promise<void> {
			await guard("open", path, box.writeFile(path, content, options(signal)));
		},
		mkdir: async () => {}, // writeFile makes what is missing
	};
}

const boxFor = (boxes: Boxes, cwd: string, path: string): Promise<Sandbox> => boxes.of(cwd).catch((error) => Promise.reject(fileError(error, "open", path)));

async function existing(box: Sandbox, path: string, signal: Signal): Promise<string> {
	for (const variant of variants(path)) {
		const found = await box.stat(variant, options(signal)).then(() => true, (error) => error.reason !== "not_found");
		if (found) return variant;
	}
	return path;
}

function readOperations(box: Sandbox, path: string, images: boolean, signal: Signal) {
	const shared = operations(box, signal);
	return {
		access: () => shared.access(path),
		readFile: () => shared.readFile(path),
		async detectImageMimeType() {
			const { type } = await box.stat(path, options(signal));
			if (type === "directory") throw fileError({ reason: "is_directory" }, "read", path);
			const mime = imageType(await shared.page(path, 0, SNIFF_BYTES));
			if (mime && !images) throw new Error(`kern: ${basename(path)} is an image (${mime}), and the settings keep images out (images: false)`);
			return mime;
		},
		async *createReadStream() {
			for (let offset = 0; ; ) {
				const bytes = await shared.page(path, offset, PAGE_BYTES);
				if (bytes.length === 0) return;
				yield bytes;
				offset += bytes.length;
			}
		},
	};
}

/**
 * pi's read looks for a path on the host, under several names, before its operations have a say. So it gets a name that is nowhere, and
 * the looking is done in the sandbox.
 */
export function readTool(pi: ExtensionAPI, boxes: Boxes) {
	const base = createReadToolDefinition(process.cwd());
	async function boxed(path: string, cwd: string, signal: Signal) {
		const box = await boxFor(boxes, cwd, path);
		return readOperations(box, await existing(box, path, signal), boxes.settings().images, signal);
	}
	return {
		...base,
		execute: (async (id, params, signal, onUpdate, ctx) => {
			const path = absolutePath(params.path, ctx.cwd);
			const nowhere = `/kern-read/${randomUUID()}`;
			const operations = isSpill(path, ctx) ? spillOperations(path) : await boxed(path, ctx.cwd, signal);
			const autoResizeImages = pi.getSettings().images?.autoResize ?? true;
			const result = await createReadToolDefinition(ctx.cwd, { operations, autoResizeImages }).execute(id, { ...params, path: nowhere }, signal, onUpdate, ctx);
			const text = JSON.stringify(result);
			return text.includes(nowhere) ? JSON.parse(text.replaceAll(nowhere, () => JSON.stringify(params.path).slice(1, -1))) : result;
		}) as typeof base.execute,
	};
}

export function writeTool(boxes: Boxes) {
	const base = createWriteToolDefinition(process.cwd());
	return {
		...base,
		execute: (async (id, params, signal, onUpdate, ctx) => {
			const box = await boxFor(boxes, ctx.cwd, params.path);
			return createWriteToolDefinition(ctx.cwd, { operations: operations(box, signal) }).execute(id, params, signal, onUpdate, ctx);
		}) as typeof base.execute,
	};
}

export function editTool(boxes: Boxes) {
	const base = createEditToolDefinition(process.cwd());
	return {
		...base,
		execute: (async (id, params, signal, onUpdate, ctx) => {
			const box = await boxFor(boxes, ctx.cwd, params.path);
			return createEditToolDefinition(ctx.cwd, { operations: operations(box, signal) }).execute(id, params, signal, onUpdate, ctx);
		}) as typeof base.execute,
	};
}

/** One listing answers for all its entries; only links are looked at one by one. */
function lsOperations(box: Sandbox, signal: Signal) {
	const types = new Map<string, string>();
	async function typeOf(path: string): Promise<string> {
		const known = types.get(path);
		if (known !== undefined && known !== "symlink") return known;
		try {
			return (await box.stat(path, options(signal))).type;
		} catch (error) {
			// a link out of the workspace is shown, as a name
			if (known === "symlink" && (error as { reason?: string }).reason === "path_escape") return "symlink";
			throw fileError(error, "stat", path);
		}
	}
	return {
		exists: (path: string) => typeOf(path).then(() => true, (error) => (error.code === "ENOENT" || error.code === "ENOTDIR" ? false : Promise.reject(error))),
		stat: async (path: string) => {
			const type = await typeOf(path);
			return { isDirectory: () => type === "directory" };
		},
		async readdir(path: string) {
			const entries = await box.listFiles(path, options(signal)).catch((error) => Promise.reject(fileError(error, "scandir", path)));
			return entries.map((entry) => {
				const name = basename(entry.path ?? Buffer.from(entry.pathBase64 ?? "", "base64").toString("utf8"));
				types.set(path.endsWith("/") ? path + name : `${path}/${name}`, entry.type);
				return name;
			});
		},
	};
}

export function lsTool(boxes: Boxes) {
	const base = createLsToolDefinition(process.cwd());
	return {
		...base,
		defaultActive: false,
		execute: (async (id, params, signal, onUpdate, ctx) => {
			const box = await boxFor(boxes, ctx.cwd, params.path ?? ".");
			return createLsToolDefinition(ctx.cwd, { operations: lsOperations(box, signal) }).execute(id, params, signal, onUpdate, ctx);
		}) as typeof base.execute,
	};
}
