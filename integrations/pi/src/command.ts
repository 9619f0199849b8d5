// What a person sees: the status line, /kern, and the section of the system prompt.
import type { Boxes } from "./boxes.ts";
import { kern } from "./boxes.ts";
import type { Settings } from "./settings.ts";

const network = (settings: Settings) => (settings.network ? "the host's network" : settings.egress.length > 0 ? `network: ${settings.egress.join(", ")} only` : "no network");

/** A few words for the status line. */
export function statusLine(boxes: Boxes): string {
	try {
		return `kern: boxed, ${network(boxes.settings())}`;
	} catch {
		return "kern: tools refuse, the settings are wrong (/kern)";
	}
}

/** The section of the system prompt. */
export function promptSection(boxes: Boxes, cwd: string): string {
	const settings = boxes.settings();
	return [
		`Tools run in a sandbox. ${cwd} is there under its own path and writable; skills and pi's documentation are readable; other files of this machine are not.`,
		`bash: ${network(settings)}, ${settings.memoryMb} MiB, ${settings.pids} processes, a fresh box for each command. A command ends after ${settings.timeoutS} s unless it asks for another timeout (at most ${settings.maxTimeoutS} s).`,
		"Processes that a command leaves in the background end with it. /tmp and the home directory are empty for each command; keep files in the working directory.",
	].join("\n");
}

async function doctor(): Promise<string> {
	const { doctor: ask, info } = await kern();
	const { program, server } = await info();
	const { ok, checks } = await ask();
	const lines = checks.map((check) => `${check.status.padEnd(4)} ${check.id}: ${check.found}${check.fix ? ` - ${check.fix}` : ""}`);
	return [`${program} ${server.version}: ${ok ? "boxes start" : "boxes do not start"}`, ...lines].join("\n");
}

function status(boxes: Boxes, cwd: string, foreign: string[]): string {
	const settings = boxes.settings();
	return [
		promptSection(boxes, cwd),
		settings.off.length > 0 ? `Not ours by the settings, and not in a box: ${settings.off.join(", ")}` : "All tools are ours.",
		...foreign,
		...boxes.left.map((one) => `Not readable in the box: ${one}`),
	].join("\n");
}

/** /kern, /kern doctor -> what to show. */
export async function kernCommand(args: string, boxes: Boxes, cwd: string, foreign: string[]): Promise<{ text: string; level: "info" | "error" }> {
	try {
		const word = args.trim();
		if (word === "doctor") return { text: await doctor(), level: "info" };
		if (word !== "" && word !== "status") return { text: `/kern ${word}: there are /kern and /kern doctor`, level: "error" };
		return { text: status(boxes, cwd, foreign), level: "info" };
	} catch (error) {
		return { text: `kern: ${(error as Error).message}`, level: "error" };
	}
}
