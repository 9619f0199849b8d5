// Before `npm pack`: puts the program, the worker and the languages of a build into the package, as they lie in the build. After it
// (--remove) they go. The build is ../../build, or KERN_BUILD.
'use strict';

const fs = require('node:fs');
const path = require('node:path');

const to = path.join(__dirname, '..', 'program');
const build = process.env.KERN_BUILD ?? path.join(__dirname, '..', '..', '..', 'build');

fs.rmSync(to, { recursive: true, force: true });
if (process.argv[2] === '--remove') process.exit(0);

function copy(from, name) {
  const target = path.join(to, name);
  fs.mkdirSync(path.dirname(target), { recursive: true });
  fs.copyFileSync(from, target);
  fs.chmodSync(target, fs.statSync(from).mode & 0o100 ? 0o755 : 0o644);
}

copy(path.join(build, 'kern-sidecar'), 'kern-sidecar');
copy(path.join(build, 'kern-worker'), 'kern-worker');
for (const language of fs.readdirSync(path.join(build, 'languages'))) {
  const home = path.join(build, 'languages', language);
  const plugin = path.join(home, `${language}.so`);
  if (!fs.existsSync(plugin)) continue;
  copy(plugin, path.join('languages', language, `${language}.so`));
  for (const file of fs.readdirSync(path.join(home, 'run')))
    copy(path.join(home, 'run', file), path.join('languages', language, 'run', file));
}
