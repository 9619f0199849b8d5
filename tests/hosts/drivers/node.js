// The Node package: a kernel runs the cell.
'use strict';

const fs = require('node:fs');

const touch = (name) => fs.writeFileSync(`${process.env.KERN_PLACE}/${name}`, '');
const code = fs.readFileSync('code.py', 'utf8');

async function main() {
  touch('begun');
  const kern = require('kern-sandbox');
  if (process.env.KERN_PRIVATE) await new kern.Sandbox().writeFile('kept', 'x'); // a directory of the sidecar's own
  const kernel = await new kern.Sandbox({ workspace: '.' }).kernel();
  await kernel.runCode(code);
  touch('shown');
}
main();
setInterval(() => {}, 1e6);
