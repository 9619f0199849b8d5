// Before packaging: copies the program, the worker and the languages out of the package kern-sandbox into this extension, where the
// bundled package looks for them.
'use strict';

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const from = path.dirname(require.resolve('kern-sandbox/package.json'));
const to = path.join(__dirname, '..', 'program');
const carry = path.join(from, 'tools', 'carry.js'); // there in a source tree, which has no program until it is packed

if (fs.existsSync(carry)) execFileSync(process.execPath, [carry]);
fs.rmSync(to, { recursive: true, force: true });
fs.cpSync(path.join(from, 'program'), to, { recursive: true });
if (fs.existsSync(carry)) execFileSync(process.execPath, [carry, '--remove']);
