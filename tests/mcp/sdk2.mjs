// The 2.x line of the TypeScript SDK. node sdk2.mjs CLIENTS PROGRAM legacy|auto|2026-07-28
import { createRequire } from "node:module";
import { exercise } from "./common.mjs";

const [clients, program, mode] = process.argv.slice(2);
const require = createRequire(`${clients}/node/main.js`);
const { Client } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");

const versionNegotiation = { mode: mode.includes("-") ? { pin: mode } : mode };
const client = new Client({ name: "test", version: "1" }, { versionNegotiation });
await client.connect(new StdioClientTransport({ command: program, args: ["--mcp"], env: process.env }));
const server = client.getServerVersion()?.name;
const version = client.getNegotiatedProtocolVersion?.();
const result = await exercise(client, (params, options) => client.callTool(params, options));
console.log(JSON.stringify({ server, version, ...result }));
