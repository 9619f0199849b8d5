// Settings: kern.json in pi's own directory, and KERN_PI_* above it. Never a file of the workspace, which the code in the box can
// write. What is wrong is an error that names the setting; the tools then refuse, they do not run with less.
import { readFileSync } from "node:fs";
import { join } from "node:path";

export const TOOLS = ["bash", "read", "write", "edit", "grep", "find", "ls", "powershell"] as const;
export type ToolName = (typeof TOOLS)[number];

export interface Settings {
	image?: string;
	profiles: string[];
	memoryMb: number;
	cpus?: number;
	pids: number;
	timeoutS: number;
	maxTimeoutS: number;
	maxOutputBytes: number;
	network: boolean;
	egress: string[];
	env: string[];
	images: boolean;
	mounts: Record<string, string | [string, "ro" | "rw"]>;
	off: ToolName[];
}

export const DEFAULTS: Settings = {
	profiles: [],
	memoryMb: 2048,
	pids: 512,
	timeoutS: 120,
	maxTimeoutS: 3600,
	maxOutputBytes: 64 << 20,
	network: false,
	egress: [],
	env: ["LANG", "LC_ALL", "TZ", "TERM", "NO_COLOR", "FORCE_COLOR"],
	images: true,
	mounts: {},
	off: [],
};

type Kind = "text" | "count" | "number" | "switch" | "list" | "tools" | "mounts";

const FIELDS: Record<keyof Settings, { variable?: string; kind: Kind }> = {
	image: { variable: "KERN_PI_IMAGE", kind: "text" },
	profiles: { variable: "KERN_PI_PROFILES", kind: "list" },
	memoryMb: { variable: "KERN_PI_MEMORY_MB", kind: "count" },
	cpus: { variable: "KERN_PI_CPUS", kind: "number" },
	pids: { variable: "KERN_PI_PIDS", kind: "count" },
	timeoutS: { variable: "KERN_PI_TIMEOUT", kind: "number" },
	maxTimeoutS: { variable: "KERN_PI_MAX_TIMEOUT", kind: "number" },
	maxOutputBytes: { variable: "KERN_PI_MAX_OUTPUT", kind: "count" },
	network: { variable: "KERN_PI_NETWORK", kind: "switch" },
	egress: { variable: "KERN_PI_EGRESS", kind: "list" },
	env: { variable: "KERN_PI_ENV", kind: "list" },
	images: { variable: "KERN_PI_IMAGES", kind: "switch" },
	mounts: { kind: "mounts" },
	off: { variable: "KERN_PI_OFF", kind: "tools" },
};

export class SettingsError extends Error {}

const isText = (value: unknown) => typeof value === "string" && value !== "";
const isNumber = (value: unknown) => typeof value === "number" && Number.isFinite(value) && value > 0;
const isList = (value: unknown): value is string[] => Array.isArray(value) && value.every(isText);
const isMount = (value: unknown) => isText(value) || (isList(value) && value.length === 2 && (value[1] === "ro" || value[1] === "rw"));

const KINDS: Record<Kind, { wanted: string; fits: (value: unknown) => boolean; read: (word: string) => unknown }> = {
	text: { wanted: "a text", fits: isText, read: (word) => word },
	count: { wanted: "a whole number above 0", fits: (v) => isNumber(v) && Number.isInteger(v), read: Number },
	number: { wanted: "a number above 0", fits: isNumber, read: Number },
	switch: {
		wanted: "true or false (in the environment 1 or 0)",
		fits: (v) => typeof v === "boolean",
		read: (word) => ({ "1": true, true: true, on: true, "0": false, false: false, off: false })[word.toLowerCase()],
	},
	list: { wanted: "a list of texts (in the environment with commas)", fits: isList, read: (word) => word.split(",").map((one) => one.trim()).filter(Boolean) },
	tools: {
		wanted: `some of ${TOOLS.join(", ")}`,
		fits: (v) => isList(v) && v.every((one) => (TOOLS as readonly string[]).includes(one)),
		read: (word) => word.split(",").map((one) => one.trim()).filter(Boolean),
	},
	mounts: {
		wanted: '{"/source": "/target"} or {"/source": ["/target", "ro"]}',
		fits: (v) => typeof v === "object" && v !== null && !Array.isArray(v) && Object.entries(v).every(([source, where]) => source.startsWith("/") && isMount(where)),
		read: (word) => word,
	},
};

function take(into: Settings, field: keyof Settings, value: unknown, where: string): void {
	const kind = KINDS[FIELDS[field].kind];
	if (!kind.fits(value)) throw new SettingsError(`${where}: ${kind.wanted} wanted, not ${JSON.stringify(value) ?? "that"}`);
	(into as unknown as Record<string, unknown>)[field] = value;
}

/** The settings of now. `directory` is pi's own, for example ~/.pi/agent. */
export function loadSettings(directory: string, env: NodeJS.ProcessEnv): Settings {
	const settings: Settings = { ...DEFAULTS };
	const file = join(directory, "kern.json");
	let text: string | undefined;
	try {
		text = readFileSync(file, "utf8");
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw new SettingsError(`${file}: ${(error as Error).message}`);
	}
	if (text !== undefined) {
		let read: unknown;
		try {
			read = JSON.parse(text);
		} catch (error) {
			throw new SettingsError(`${file}: ${(error as Error).message}`);
		}
		if (typeof read !== "object" || read === null || Array.isArray(read)) throw new SettingsError(`${file}: an object wanted`);
		for (const [name, value] of Object.entries(read)) {
			if (!Object.hasOwn(FIELDS, name)) throw new SettingsError(`${file}: there is no setting ${name}; there are ${Object.keys(FIELDS).join(", ")}`);
			take(settings, name as keyof Settings, value, `${file}: ${name}`);
		}
	}
	for (const [name, { variable, kind }] of Object.entries(FIELDS)) {
		const word = variable && env[variable];
		if (word) take(settings, name as keyof Settings, KINDS[kind].read(word), variable);
	}
	for (const variable of Object.keys(env))
		if (variable.startsWith("KERN_PI_") && !Object.values(FIELDS).some((field) => field.variable === variable))
			throw new SettingsError(`${variable}: there is no such setting; there are ${Object.values(FIELDS).map((field) => field.variable).filter(Boolean).join(", ")}`);
	if (settings.timeoutS > settings.maxTimeoutS) throw new SettingsError(`timeoutS ${settings.timeoutS} is above maxTimeoutS ${settings.maxTimeoutS}`);
	return settings;
}
