// What is thrown. A SandboxError means that the code did not run (or that nobody can know, SidecarLost); what the sandbox did to
// code that ran is `fault` in a result and never an exception. Switch on `reason`, the words of the protocol.
'use strict';

class SandboxError extends Error {
  /** @param {string} reason @param {string} message @param {object} [facts] option, hint, retryable, code, details, cause */
  constructor(reason, message, facts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = new.target.name;
    this.reason = reason;
    this.retryable = facts.retryable ?? false;
    for (const fact of ['option', 'pointer', 'hint', 'code', 'errno', 'step', 'details'])
      if (facts[fact] !== undefined) this[fact] = facts[fact];
  }
}

/** An option that is misspelt, of the wrong type, or out of range; `option` names it. */
class OptionError extends SandboxError {}

/** A mount or tmpfs that a box must not have. */
class MountRefused extends SandboxError {}

/** The program is not there or cannot be started. */
class ProgramNotFound extends SandboxError {}

/** The sidecar ended during the call, and everything in its boxes with it. The next call starts a new one. */
class SidecarLost extends SandboxError {}

const OPTION_REASONS = new Set(['unknown_option', 'unsupported_option', 'invalid_type', 'invalid_value', 'out_of_range', 'missing']);
const OPTION_NAMES = { cpusMilli: 'cpus', timeoutMs: 'timeoutS' };

/** The error object of a JSON-RPC reply as what the package throws. */
function fromReply(error) {
  const data = error.data ?? {};
  const reason = data.reason ?? 'internal';
  const field = data.path?.split('/').find((part) => part && part !== 'session');
  const facts = { ...data, pointer: data.path, code: error.code, option: field && (OPTION_NAMES[field] ?? field) };
  const text = data.hint ? `${error.message} (${data.hint})` : error.message;
  if (reason === 'mount_refused') return new MountRefused(reason, text, facts);
  if (OPTION_REASONS.has(reason)) return new OptionError(reason, facts.option ? `${facts.option}: ${text}` : text, facts);
  return new SandboxError(reason, text, facts);
}

module.exports = { SandboxError, OptionError, MountRefused, ProgramNotFound, SidecarLost, fromReply };
