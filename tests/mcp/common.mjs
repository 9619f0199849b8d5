// What both lines of the TypeScript SDK are asked to do with a connected client. Prints one JSON object.
import assert from "node:assert/strict";

const text = (result) => result.content.filter((block) => block.type === "text").map((block) => block.text).join("");

export async function exercise(client, callTool) {
  const tools = (await client.listTools()).tools;
  const run = (code, options) => callTool({ name: "run_code", arguments: { code } }, options);
  assert.equal(text(await run("print('hi')\n6 * 7")), "hi\n42\n");

  const failed = await callTool({ name: "run_code", arguments: { cod: "1" } });
  assert.equal(failed.isError, true);
  assert.match(text(failed), /did you mean "code"/);
  await assert.rejects(callTool({ name: "no_such_tool", arguments: {} }), /Unknown tool/);

  await callTool({ name: "write_file", arguments: { path: "a.txt", content: "one\n" } });
  await callTool({ name: "edit_file", arguments: { path: "a.txt", old_text: "one", new_text: "two" } });
  assert.equal(text(await callTool({ name: "read_file", arguments: { path: "a.txt" } })), "two\n");
  assert.equal(text(await callTool({ name: "search_files", arguments: { pattern: "two" } })), "a.txt:1: two\n");
  assert.equal(text(await callTool({ name: "list_files", arguments: {} })), "a.txt  4 bytes\n");

  const together = await Promise.all(Array.from({ length: 20 }, (_, n) => run(`${n} + 1`)));
  assert.deepEqual(together.map(text), Array.from({ length: 20 }, (_, n) => `${n + 1}\n`));

  const told = [];
  await run("import time; time.sleep(1.7)", { onprogress: (progress) => told.push(progress.progress) });
  assert.ok(told.length >= 1 && told.every((value, i) => i === 0 || value > told[i - 1]), `progress: ${told}`);

  const abort = new AbortController();
  const endless = run("while True: pass", { signal: abort.signal });
  setTimeout(() => abort.abort("enough"), 300);
  await assert.rejects(endless);
  assert.equal(text(await run("'after'")), "'after'\n");

  const image = (
    await run("import base64\nclass P:\n    def _repr_png_(self): return base64.b64decode('" + PIXEL + "')\nP()")
  ).content.find((block) => block.type === "image");
  assert.equal(image.mimeType, "image/png");
  assert.ok(Buffer.from(image.data, "base64").subarray(1, 4).equals(Buffer.from("PNG")));
  await client.close();
  return { tools: tools.map((tool) => tool.name) };
}

const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
