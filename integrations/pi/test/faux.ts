// A provider that plays a script: [{"text", "calls": [{"name", "args"}]}, …], from the file FAUX_SCRIPT. $SPILL in an argument is the
// path that the result before told.
import { readFileSync } from "node:fs";
import { fauxAssistantMessage, fauxProvider, fauxText, fauxToolCall } from "@earendil-works/pi-ai";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

interface Step {
	text?: string;
	calls?: { name: string; args: Record<string, unknown> }[];
}

export default function faux(pi: ExtensionAPI): void {
	const provider = fauxProvider({ provider: "faux", models: [{ id: "scripted" }] });
	const steps: Step[] = JSON.parse(readFileSync(process.env.FAUX_SCRIPT as string, "utf8"));
	provider.setResponses(
		steps.map(({ text, calls = [] }) => (context: unknown) => {
			const told = [...JSON.stringify(context).matchAll(/Full output: (\/[^\]"\\]+\.log)/g)].at(-1)?.[1] ?? "";
			const args = (call: { args: unknown }) => JSON.parse(JSON.stringify(call.args).replaceAll("$SPILL", told));
			return fauxAssistantMessage([...(text ? [fauxText(text)] : []), ...calls.map((call) => fauxToolCall(call.name, args(call)))], {
				stopReason: calls.length > 0 ? "toolUse" : "stop",
			});
		}),
	);
	pi.registerProvider(provider.provider);
}
