// For pi: a model that asks for one command, and says so when its result has come.
import { writeFileSync } from "node:fs";
import { fauxAssistantMessage, fauxProvider, fauxText, fauxToolCall } from "@earendil-works/pi-ai";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

const touch = (name: string): void => writeFileSync(`${process.env.KERN_PLACE}/${name}`, "");

export default function driver(pi: ExtensionAPI): void {
	const { provider, setResponses } = fauxProvider({ provider: "faux", models: [{ id: "scripted" }] });
	setResponses([
		() => {
			touch("begun");
			return fauxAssistantMessage([fauxToolCall("bash", { command: "python3 code.py", timeout: 600 })], { stopReason: "toolUse" });
		},
		() => {
			touch("shown");
			return fauxAssistantMessage([fauxText("done")], { stopReason: "stop" });
		},
	]);
	pi.registerProvider(provider);
}
