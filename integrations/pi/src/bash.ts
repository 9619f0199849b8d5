// Commands: those of the model and those that a person types behind `!`. Each has a box of its own.
import { existsSync } from "node:fs";
import { createBashToolDefinition, type BashOperations, type ExtensionAPI } from "@earendil-works/pi-coding-agent";
import type { ExecutionResult } from "kern-sandbox";
import type { Boxes } from "./boxes.ts";
import { kernError } from "./errors.ts";
import type { Settings } from "./settings.ts";

const ARGUMENT_BYTES = 120_000; // the kernel takes less than 128 KiB as one argument

function secondsOf(timeout: number | undefined, otherwise: number, settings: Settings): number {
	if (timeout === undefined) return otherwise;
	if (!Number.isFinite(timeout) || timeout <= 0) throw new Error("Invalid timeout: must be a finite number of seconds");
	return Math.min(timeout, settings.maxTimeoutS);
}

/** What the box gets of pi's environment: what the settings name, and no keys of providers. */
function environment(names: string[]): Record<string, string> {
	const values = names.map((name) => [name, process.env[name]]);
	return Object.fromEntries(values.filter(([, value]) => value !== undefined && !value.includes("\n")));
}

/** The name of bash as pi calls it, for it stands before messages; in an image it lies where PATH says. */
const shellOf = ({ image }: Settings) => (image === undefined && existsSync("/bin/bash") ? "/bin/bash" : "bash");

/** Passes output on up to a limit; a box may write for as long as its deadline allows. */
function limited(onData: (data: Buffer) => void, limit: number) {
	let left = limit;
	let dropped = 0;
	return {
		take(chunk: Buffer) {
			const part = chunk.subarray(0, left);
			left -= part.length;
			dropped += chunk.length - part.length;
			if (part.length > 0) onData(part);
		},
		end() {
			if (dropped > 0) onData(Buffer.from(`\n[kern] ${dropped} bytes beyond the first ${limit} were not kept\n`));
		},
	};
}

async function run(boxes: Boxes, command: string, cwd: string, seconds: number, signal: AbortSignal | undefined, onData: (data: Buffer) => void): Promise<ExecutionResult> {
	const settings = boxes.settings();
	const box = await boxes.of(cwd);
	if (signal?.aborted) throw new Error("aborted");
	const out = limited(onData, settings.maxOutputBytes);
	const options = {
		timeoutS: seconds,
		env: environment(settings.env),
		merge: true,
		maxOutputBytes: 1, // all of it goes through onStdout
		lossless: true,
		onStdout: (chunk: Buffer) => out.take(chunk),
		...(signal && { signal }),
	};
	try {
		return Buffer.byteLength(command) < ARGUMENT_BYTES
			? await box.run([shellOf(settings), "-c", command], options)
			: await box.runCode(command, { ...options, language: "bash" });
	} finally {
		out.end();
	}
}

/** `otherwise`: the deadline when none is asked for. */
export function bashOperations(boxes: Boxes, otherwise: (settings: Settings) => number): BashOperations {
	return {
		async exec(command, cwd, { onData, signal, timeout }) {
			if (signal?.aborted) throw new Error("aborted");
			let started = false;
			const take = (data: Buffer) => {
				started = true;
				onData(data);
			};
			try {
				const settings = boxes.settings();
				const seconds = secondsOf(timeout, otherwise(settings), settings);
				const { fault, exitCode } = await run(boxes, command, cwd, seconds, signal, take);
				if (fault?.type === "cancelled") throw new Error("aborted");
				if (fault?.type === "timeout") throw new Error(`timeout:${seconds}`);
				if (fault) onData(Buffer.from(`\n[kern] ${fault.type}: ${fault.message}\n`));
				return { exitCode };
			} catch (error) {
				if (signal?.aborted) throw new Error("aborted");
				const { reason, message } = error as { reason?: string; message: string };
				if (reason === undefined) throw error;
				if (!started) throw kernError(error);
				onData(Buffer.from(`\n[kern] ${reason}: ${message}\n`)); // any other way would lose what there was
				return { exitCode: null };
			}
		},
	};
}

export function bashTool(pi: ExtensionAPI, boxes: Boxes) {
	const operations = bashOperations(boxes, (settings) => settings.timeoutS);
	const make = (cwd: string, commandPrefix?: string) =>
		createBashToolDefinition(cwd, { operations, exposeSessionEnvironment: false, ...(commandPrefix && { commandPrefix }) });
	const base = make(process.cwd());
	return {
		...base,
		description: `${base.description} Each command runs in a sandbox of its own, with a default timeout; processes that it leaves in the background end with it.`,
		promptGuidelines: [
			"A bash command and everything that it starts end together: to use a server, start it and its client in the same command (server & sleep 1; client).",
		],
		execute: ((id, params, signal, onUpdate, ctx) =>
			make(ctx.cwd, pi.getSettings().shellCommandPrefix).execute(id, params, signal, onUpdate, ctx)) as typeof base.execute,
	};
}
