// Long output of a command is kept by pi in a file of the host's, whose path the model is told. Exactly these files can be read: the
// session of now says which they are, also when it has been resumed.
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import type { ExtensionContext } from "@earendil-works/pi-coding-agent";

const NAME = /\/pi-bash-[0-9a-f]+\.log$/;

function pathIn(message: { role: string }): string | undefined {
	const { role, toolName, details, fullOutputPath } = message as { role: string; toolName?: string; details?: { fullOutputPath?: string }; fullOutputPath?: string };
	if (role === "bashExecution") return fullOutputPath; // what a person typed behind !
	return role === "toolResult" && toolName === "bash" ? details?.fullOutputPath : undefined;
}

export function isSpill(path: string, { sessionManager }: ExtensionContext): boolean {
	return NAME.test(path) && sessionManager.getBranch().some((entry) => entry.type === "message" && pathIn(entry.message) === path);
}

const openSpill = (path: string) => open(path, constants.O_RDONLY | constants.O_NOFOLLOW);

/** A file of pi's own, as operations of the read tool. */
export const spillOperations = (path: string) => ({
	access: async () => (await openSpill(path)).close(),
	async readFile() {
		const file = await openSpill(path);
		return file.readFile().finally(() => file.close());
	},
	async *createReadStream() {
		const file = await openSpill(path);
		try {
			yield* file.createReadStream({ autoClose: false });
		} finally {
			await file.close();
		}
	},
});
