// The extension. All tools are registered here and now, whatever else is wrong: a tool that is not ours would run on the host, so what
// is missing or broken (settings, package, program, sidecar) is found out at the first call, and is an error of that call.
import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { createPowerShellToolDefinition, type ExtensionAPI, getAgentDir, getDocsPath, getExamplesPath, getReadmePath } from "@earendil-works/pi-coding-agent";
import { bashOperations, bashTool } from "./bash.ts";
import { Boxes } from "./boxes.ts";
import { kernCommand, promptSection, statusLine } from "./command.ts";
import { editTool, lsTool, readTool, writeTool } from "./files.ts";
import { findTool, grepTool } from "./search.ts";
import { loadSettings, type Settings, TOOLS, type ToolName } from "./settings.ts";

const OWN = realpathSync(fileURLToPath(import.meta.url));

/** The settings, read once for each extension; wrong ones are thrown at everybody who asks. */
function settingsOnce(): () => Settings {
	try {
		const settings = loadSettings(getAgentDir(), process.env);
		return () => settings;
	} catch (error) {
		return () => {
			throw Object.assign(new Error((error as Error).message), { reason: "settings" });
		};
	}
}

function powershellTool() {
	const base = createPowerShellToolDefinition(process.cwd());
	const refuse: typeof base.execute = () => Promise.reject(new Error("kern: there is no PowerShell in the sandbox; use bash"));
	return { ...base, defaultActive: false, execute: refuse };
}

/** Tools that the settings leave to others; with wrong settings none. */
function offOf(settings: () => Settings): readonly ToolName[] {
	try {
		return settings().off;
	} catch {
		return [];
	}
}

export default function kernExtension(pi: ExtensionAPI): void {
	const settings = settingsOnce();
	const boxes = new Boxes(settings);
	const off = offOf(settings);
	const ours = TOOLS.filter((name) => !off.includes(name));
	const makers: Record<ToolName, () => Parameters<ExtensionAPI["registerTool"]>[0]> = {
		bash: () => bashTool(pi, boxes) as never,
		read: () => readTool(pi, boxes) as never,
		write: () => writeTool(boxes) as never,
		edit: () => editTool(boxes) as never,
		grep: () => grepTool(boxes) as never,
		find: () => findTool(boxes) as never,
		ls: () => lsTool(boxes) as never,
		powershell: () => powershellTool() as never,
	};
	for (const name of ours) pi.registerTool(makers[name]());

	/** Who has a tool that should be ours; undefined when we do. */
	function thief(name: string): string | undefined {
		const tool = pi.getAllTools().find((one) => one.name === name);
		if (!tool) return undefined;
		try {
			if (realpathSync(tool.sourceInfo.path) === OWN) return undefined;
		} catch {
			// builtin:bash is no path
		}
		return tool.sourceInfo.path;
	}
	const foreign = () => ours.flatMap((name) => (thief(name) === undefined ? [] : [`${name} belongs to ${thief(name)}; kern blocks it. To leave it there, name it in "off"`]));

	pi.on("tool_call", (event) => {
		if (!(ours as readonly string[]).includes(event.toolName)) return undefined;
		const owner = thief(event.toolName);
		return owner === undefined ? undefined : { block: true, reason: `kern: ${event.toolName} belongs to ${owner} and would not run in the sandbox` };
	});
	if (ours.includes("bash")) pi.on("user_bash", () => ({ operations: bashOperations(boxes, (one) => one.maxTimeoutS) }));

	pi.on("before_agent_start", (event) => {
		boxes.setReadable([...event.systemPromptOptions.skills.map((skill) => skill.baseDir), getDocsPath(), getExamplesPath(), getReadmePath()]);
		try {
			event.systemPromptOptions.sections.kern_sandbox = promptSection(boxes, event.systemPromptOptions.cwd);
		} catch {
			// wrong settings: the tools say so
		}
	});
	pi.on("session_start", (_event, ctx) => {
		ctx.ui.setStatus("kern", statusLine(boxes));
		for (const problem of foreign()) ctx.ui.notify(`kern: ${problem}`, "error");
		try {
			settings();
		} catch (error) {
			ctx.ui.notify(`kern: ${(error as Error).message}`, "error");
		}
	});
	pi.on("session_shutdown", () => boxes.close());
	pi.registerCommand("kern", {
		description: "What the sandbox allows; /kern doctor looks at this machine",
		handler: async (args, ctx) => {
			const { text, level } = await kernCommand(args, boxes, ctx.cwd, foreign());
			ctx.ui.notify(text, level);
		},
	});
}
