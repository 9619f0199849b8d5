// The 1.x line of the TypeScript SDK: initialize, 2025-11-25 and before. node sdk1.mjs CLIENTS PROGRAM
import { createRequire } from "node:module";
import { exercise } from "./common.mjs";

const [clients, program] = process.argv.slice(2);
const require = createRequire(`${clients}/node/main.js`);
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");

const client = new Client({ name: "test", version: "1" });
await client.connect(new StdioClientTransport({ command: program, args: ["--mcp"], env: process.env }));
const server = client.getServerVersion().name;
const result = await exercise(client, (params, options) => client.callTool(params, undefined, options));
console.log(JSON.stringify({ server, ...result }));
