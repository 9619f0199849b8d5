// Options into params. Every name, type and range is checked here, before anything is started, by the tables that the sidecar
// itself decodes with (protocol.js): a misspelt safety option must not be ignored.
'use strict';

const path = require('node:path');
const { OptionError, MountRefused } = require('./errors.js');
const { fields } = require('./protocol.js');

const CALLBACKS = ['onStdout', 'onStderr', 'onDisplay'];
const own = (object, name) => Object.prototype.hasOwnProperty.call(object, name);
const plain = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const shown = (value) => { const text = JSON.stringify(value) ?? String(value); return text.length > 60 ? text.slice(0, 57) + '...' : text; };

/** `where` is an option or a place in it: `option` of the error is its name. */
function fail(reason, where, text) { throw new OptionError(reason, `${where}: ${text}`, { option: /^[^.[:]*/.exec(where)[0] }); }

function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] !== b[j - 1]));
    row = next;
  }
  return row[b.length];
}

function unknown(name, known) {
  const close = [...known].map((one) => [distance(name.toLowerCase(), one.toLowerCase()), one]).sort((a, b) => a[0] - b[0])[0];
  const cure = close && close[0] <= Math.max(2, name.length / 3) ? `did you mean ${close[1]}?` : `there are ${[...known].join(', ')}`;
  fail('unknown_option', name, `no such option; ${cure}`);
}

const TYPES = {
  string: (v) => typeof v === 'string',
  integer: (v) => Number.isSafeInteger(v),
  boolean: (v) => typeof v === 'boolean',
  array: Array.isArray,
  object: plain,
};

/** Throws unless `value` is what `rule` of the protocol wants. */
function checkRule(option, value, rule) {
  if (rule.ref) return;
  const types = [rule.type].flat();
  if (!types.some((type) => TYPES[type](value))) fail('invalid_type', option, `${types.join(' or ')} wanted, not ${shown(value)}`);
  if (rule.enum && !rule.enum.includes(value)) fail('invalid_value', option, `${shown(value)} is not one of ${rule.enum.join(', ')}`);
  if (rule.minimum !== undefined && (value < rule.minimum || value > rule.maximum))
    fail('out_of_range', option, `${value} is not within ${rule.minimum} to ${rule.maximum}`);
  if (typeof value === 'string') {
    if (value.includes('\0')) fail('invalid_value', option, 'has a NUL');
    if (value.length < (rule.minLength ?? 0)) fail('invalid_value', option, 'is empty');
    if (rule['x-maxBytes'] && Buffer.byteLength(value) > rule['x-maxBytes']) fail('invalid_value', option, `longer than ${rule['x-maxBytes']} bytes`);
    if (rule.pattern && !new RegExp(rule.pattern, 'u').test(value)) fail('invalid_value', option, `${shown(value)} does not match ${rule.pattern}`);
  } else if (Array.isArray(value)) {
    if (value.length > (rule.maxItems ?? Infinity) || value.length < (rule.minItems ?? 0))
      fail('invalid_value', option, `${value.length} items, not ${rule.minItems ?? 0} to ${rule.maxItems}`);
    value.forEach((item, i) => checkRule(`${option}[${i}]`, item, rule.items));
  } else if (plain(value)) {
    if (Object.keys(value).length > (rule.maxProperties ?? Infinity)) fail('invalid_value', option, `more than ${rule.maxProperties} members`);
    for (const [name, one] of Object.entries(value)) {
      if (rule.propertyNames) checkRule(`${option}: the name ${shown(name)}`, name, { type: 'string', ...rule.propertyNames });
      if (rule.additionalProperties) checkRule(`${option}.${name}`, one, rule.additionalProperties);
    }
  }
}

function milli(option, value, unit) {
  if (typeof value !== 'number' || !(value > 0) || !Number.isFinite(value)) fail('invalid_type', option, `a positive number of ${unit} wanted, not ${shown(value)}`);
  return Math.max(1, Math.round(value * 1000));
}

function mountsOf(mounts) {
  if (!plain(mounts)) fail('invalid_type', 'mounts', `{source: target} or {source: [target, 'ro']} wanted, not ${shown(mounts)}`);
  return Object.entries(mounts).map(([source, where]) => {
    const [target, mode = 'rw', ...rest] = [where].flat();
    if (typeof target !== 'string' || rest.length) fail('invalid_type', `mounts.${source}`, `a target or [target, mode] wanted, not ${shown(where)}`);
    if (mode !== 'ro' && mode !== 'rw') fail('invalid_value', `mounts.${source}`, `the mode ${shown(mode)} is not ro or rw`);
    if (!target.startsWith('/')) throw new MountRefused('mount_refused', `mounts.${source}: the target ${shown(target)} is not absolute`, { option: 'mounts' });
    return { source: path.resolve(source), target, mode };
  });
}

/** Options whose name or form is not the protocol's: option -> [field, (option, value) => value of the field]. */
const TRANSLATED = {
  timeoutS: ['timeoutMs', (option, value) => milli(option, value, 'seconds')],
  cpus: ['cpusMilli', (option, value) => milli(option, value, 'CPUs')],
  mounts: ['mounts', (option, value) => mountsOf(value)],
  workspace: ['workspace', (option, value) => (typeof value === 'string' && value ? path.resolve(value) : value)],
  user: ['user', (option, value) => (Number.isSafeInteger(value) ? String(value) : value)],
};

/** The options that a message's fields offer, by the names that this package gives them. */
function optionsOf(message, without) {
  const hidden = new Set(Object.values(TRANSLATED).map(([field]) => field));
  const translated = Object.keys(TRANSLATED).filter((option) => own(fields[message], TRANSLATED[option][0]));
  return new Set([...Object.keys(fields[message]).filter((field) => !hidden.has(field) && !without.includes(field)), ...translated]);
}

const INTERNAL = ['runId', 'sessionId', 'session', 'kernelId', 'shellId', 'progressToken', 'render', 'stream', 'code', 'argv', 'command', 'interactive', 'allowInput', 'stdin',
  'encoding'];
const CALL_EXTRAS = [...CALLBACKS, 'signal', 'lossless', 'encoding'];
const KNOWN = {
  session: { message: 'SessionParams', extras: ['setup', 'setupTimeoutS', ...CALLBACKS], without: ['sessionId'] },
  code: { message: 'RunCodeParams', extras: [...CALL_EXTRAS, 'stdin'] },
  setup: { message: 'SessionSetupParams', extras: ['signal'], without: ['sessionId', 'command', 'stream', 'progressToken'] },
  argv: { message: 'RunArgvParams', extras: [...CALL_EXTRAS, 'stdin'] },
  kernel: { message: 'KernelOpenParams', extras: ['onState', 'onOutput', 'signal'] },
  cell: { message: 'KernelRunParams', extras: [...CALL_EXTRAS, 'onInput'] },
  shell: { message: 'ShellOpenParams', extras: ['argv', 'onOutput', 'onExit', 'signal'], without: INTERNAL.filter((name) => name !== 'argv') },
  command: { message: 'ShellRunParams', extras: [...CALL_EXTRAS.filter((name) => name !== 'encoding'), 'stdin'] },
};
for (const kind of Object.values(KNOWN)) kind.names = new Set([...optionsOf(kind.message, kind.without ?? INTERNAL), ...kind.extras]);

function checkExtra(option, value) {
  if (CALLBACKS.includes(option) || ['onState', 'onOutput', 'onExit', 'onInput'].includes(option)) {
    if (typeof value !== 'function') fail('invalid_type', option, `a function wanted, not ${shown(value)}`);
  } else if (option === 'signal') {
    if (!(value instanceof AbortSignal)) fail('invalid_type', option, 'an AbortSignal wanted');
  } else if (option === 'lossless') {
    if (typeof value !== 'boolean') fail('invalid_type', option, 'a boolean wanted');
  } else if (option === 'encoding') {
    if (value !== 'utf8' && value !== 'buffer') fail('invalid_value', option, `${shown(value)} is not utf8 or buffer`);
  } else if (option === 'setup') {
    if (typeof value !== 'string' || !value) fail('invalid_type', option, 'one shell command wanted, as a string');
  } else if (option === 'setupTimeoutS') {
    milli(option, value, 'seconds');
  } else if (option === 'stdin' && typeof value !== 'string' && !(value instanceof Uint8Array)) {
    fail('invalid_type', option, 'a string or bytes wanted');
  }
}

/** Checks options of a kind -> { params, extras }. An option that is undefined is as if absent; so is null for memoryMb and cpus. */
function parse(kind, options = {}) {
  const { message, names, extras: extraNames } = KNOWN[kind];
  if (!plain(options)) throw new OptionError('invalid_type', `options: an object wanted, not ${shown(options)}`, { option: 'options' });
  const params = {};
  const extras = {};
  for (const [option, value] of Object.entries(options)) {
    if (value === undefined) continue;
    if (!names.has(option)) unknown(option, names);
    if (value === null && (option === 'memoryMb' || option === 'cpus' || CALLBACKS.includes(option))) {
      if (CALLBACKS.includes(option)) extras[option] = null; // this once without the session's
      continue;
    }
    if (extraNames.includes(option) && option !== 'argv') {
      checkExtra(option, value);
      extras[option] = value;
      continue;
    }
    const [field, form] = TRANSLATED[option] ?? [option, (_, as) => as];
    const formed = form(option, value);
    checkRule(option, formed, fields[message][field]);
    params[field] = formed;
  }
  return { params, extras };
}

/** Options of a one-off call, taken apart into those of its session and those of the call. */
function split(options = {}) {
  if (!plain(options)) parse('session', options);
  const call = {};
  const session = {};
  for (const [option, value] of Object.entries(options)) {
    if (KNOWN.session.names.has(option) && !CALLBACKS.includes(option)) session[option] = value;
    else if (KNOWN.code.names.has(option)) call[option] = value;
    else unknown(option, new Set([...KNOWN.code.names, ...KNOWN.session.names]));
  }
  return { call, session };
}

module.exports = { parse, split, fail, shown };
