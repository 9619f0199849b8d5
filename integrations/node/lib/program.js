// Which program is the sidecar: KERN_SIDECAR, the one that this package carries, PATH.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { ProgramNotFound } = require('./errors.js');

const CARRIED = path.join(__dirname, '..', 'program', 'kern-sidecar');

function runnable(file) {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}

/** The absolute path of the program. A wrong KERN_SIDECAR is an error: nobody wants another program than the one they named. */
function findProgram(env = process.env, platform = process.platform) {
  if (platform !== 'linux')
    throw new ProgramNotFound('host_unsupported',
      `boxes need Linux, and this is ${platform}; run it in a Linux virtual machine (WSL2 on Windows, Lima or OrbStack on macOS)`);
  const named = env.KERN_SIDECAR;
  if (named) {
    if (path.isAbsolute(named) && runnable(named)) return named;
    throw new ProgramNotFound('program_not_found', `KERN_SIDECAR is ${JSON.stringify(named)}, which is not the absolute path of a program`);
  }
  if (runnable(CARRIED)) return CARRIED;
  for (const directory of (env.PATH ?? '').split(path.delimiter))
    if (path.isAbsolute(directory) && runnable(path.join(directory, 'kern-sidecar'))) return path.join(directory, 'kern-sidecar');
  throw new ProgramNotFound('program_not_found',
    'there is no kern-sidecar: this package does not carry one for this machine, and none is in PATH; build it and set KERN_SIDECAR');
}

module.exports = { findProgram };
