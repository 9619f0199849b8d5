// One sandbox for each working directory, opened at the first call that needs it. The directory is in the box under its own path,
// what pi itself has to read (skills, its documentation) is there read-only, and nothing else of the host's.
import { existsSync, realpathSync } from "node:fs";
import { sep } from "node:path";
import type { Sandbox } from "kern-sandbox";
import type { Settings } from "./settings.ts";

const MOST_MOUNTS = 48;

const within = (path: string, directory: string) => path === directory || path.startsWith(directory.endsWith(sep) ? directory : directory + sep);

/** The package that talks to the sidecar, loaded at its first use: a package that is missing must not keep tools from being ours. */
let loading: Promise<typeof import("kern-sandbox")> | undefined;
export const kern = () => (loading ??= import("kern-sandbox")); // once: of a package that throws, a second import gives an empty one

export class Boxes {
	#open = new Map<string, Promise<Sandbox>>();
	#readable: string[] = [];
	/** What was asked for and is not in the box. */
	readonly left: string[] = [];
	readonly settings: () => Settings;

	constructor(settings: () => Settings) {
		this.settings = settings;
	}

	/** Paths that tools may read beside the working directory. */
	setReadable(paths: string[]): void {
		const there = [...new Set(paths)].filter((path) => path.startsWith("/") && existsSync(path)).sort();
		this.#readable = there.filter((path) => !there.some((other) => other !== path && within(path, other))).slice(0, MOST_MOUNTS);
	}

	of(cwd: string): Promise<Sandbox> {
		const settings = this.settings(); // throws what is wrong with them
		const readable = this.#readable.filter((path) => !within(path, cwd) && !within(cwd, path) && !(path in settings.mounts));
		const key = JSON.stringify([cwd, readable, settings]);
		let opening = this.#open.get(key);
		if (!opening) {
			opening = this.#make(cwd, readable, settings);
			this.#open.set(key, opening);
			opening.catch(() => this.#open.delete(key)); // the next call tries again
		}
		return opening;
	}

	async close(): Promise<void> {
		const boxes = [...this.#open.values()];
		this.#open.clear();
		await Promise.all(boxes.map((box) => box.then((one) => one.close(), () => {})));
	}

	/** A readable path that the sidecar refuses is left out; what the settings name is not. */
	async #make(cwd: string, readable: string[], settings: Settings): Promise<Sandbox> {
		const { Sandbox, MountRefused } = await kern();
		const named = Object.entries(settings.mounts);
		for (;;) {
			const mounts = Object.fromEntries([...named, ...readable.map((path) => [realpathSync(path), [path, "ro"]])]);
			const box = new Sandbox({
				workspace: cwd,
				workspaceTarget: cwd,
				memoryMb: settings.memoryMb,
				pids: settings.pids,
				timeoutS: settings.maxTimeoutS,
				network: settings.network,
				mounts,
				trackFiles: false,
				...(settings.image !== undefined && { image: settings.image }),
				...(settings.cpus !== undefined && { cpus: settings.cpus }),
				...(settings.profiles.length > 0 && { profiles: settings.profiles }),
				...(settings.egress.length > 0 && { egressAllow: settings.egress }),
			});
			try {
				return await box.open();
			} catch (error) {
				const index = error instanceof MountRefused ? Number(/^\/mounts\/(\d+)/.exec(error.pointer ?? "")?.[1] ?? -1) - named.length : -1;
				if (!(index >= 0 && index < readable.length)) throw error;
				this.left.push(`${readable[index]}: ${(error as Error).message}`);
				readable = readable.filter((_, i) => i !== index);
			}
		}
	}
}
