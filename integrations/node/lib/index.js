'use strict';

const errors = require('./errors.js');
const { Sandbox, withSandbox, runCode } = require('./sandbox.js');
const { Kernel } = require('./kernel.js');
const { Shell } = require('./shell.js');
const { Result, ExecutionResult } = require('./result.js');
const { sidecar, shutdown } = require('./sidecar.js');
const { wholeOf } = require('./text.js');

/** What this host enforces, with a cure for what it does not. */
async function doctor() {
  const to = sidecar();
  const report = await to.request('host/doctor', {});
  return { ...report, checks: await wholeOf(to, report.checks) };
}

/** The program in use: path, pid, versions, languages, limits. */
async function info() {
  const to = sidecar();
  return { ...await to.ready, program: to.program };
}

exports.runCode = runCode;
exports.Sandbox = Sandbox;
exports.withSandbox = withSandbox;
exports.Kernel = Kernel;
exports.Shell = Shell;
exports.Result = Result;
exports.ExecutionResult = ExecutionResult;
exports.SandboxError = errors.SandboxError;
exports.OptionError = errors.OptionError;
exports.MountRefused = errors.MountRefused;
exports.ProgramNotFound = errors.ProgramNotFound;
exports.SidecarLost = errors.SidecarLost;
exports.doctor = doctor;
exports.info = info;
exports.shutdown = shutdown;
