// One call with output: sends it, hands its notifications to the callbacks in order, and makes its result.
'use strict';

const { bytesOf, textOf } = require('./text.js');
const { executionResult, resultOf } = require('./result.js');
const { newHandle } = require('./sidecar.js');
const { fail, shown } = require('./options.js');

const ANSWER_BYTES = 512 << 10; // of a line that is an answer, in one message
const AGAIN_MS = 10; // when the queue of the input is full

/** An abort by the caller's signal, or by us when a callback throws. */
function stopper(signal) {
  const own = new AbortController();
  const abort = () => own.abort(signal.reason);
  if (signal?.aborted) abort();
  else signal?.addEventListener('abort', abort, { once: true });
  return { signal: own.signal, stop: () => own.abort(), done: () => signal?.removeEventListener('abort', abort) };
}

/** The function for a run's notifications, and `end()`, after which every callback has returned; it throws what one threw. */
function deliverer(sidecar, runId, extras, stop) {
  const { onStdout, onStderr, onDisplay, onInput, lossless } = extras;
  let tail = Promise.resolve();
  let failure = null;
  const over = new AbortController();
  const ask = asker(sidecar, runId, onInput, over.signal, fail);
  async function deliver(method, params) {
    if (method === 'run/output') {
      const callback = params.stream === 'stdout' ? onStdout : onStderr;
      const returned = failure ? undefined : callback?.(bytesOf(params), params);
      if (!lossless) {
        if (typeof returned?.then === 'function') returned.then(undefined, fail); // waited for by nobody, but not lost
        return;
      }
      await returned;
      await sidecar.request('run/credit', { runId, bytes: params.bytes }).catch(() => {}); // too late is fine
    } else if (method === 'run/display' && onDisplay && !failure) {
      await onDisplay(await resultOf(sidecar, params));
    } else if (method === 'run/inputWanted' && onInput && !failure) {
      ask(params); // not waited for: the cell may be interrupted before there is an answer
    }
  }
  function fail(error) {
    failure ??= { error };
    stop();
  }
  return {
    take: (method, params) => { tail = tail.then(() => deliver(method, params)).catch(fail); },
    over: () => over.abort(),
    async end() {
      await tail;
      if (failure) throw failure.error;
    },
  };
}

/** The function for the questions of a cell. Whoever answers is told by `signal` that the cell has ended and waits no more. */
function asker(sidecar, runId, onInput, signal, failed) {
  let ended = false;
  async function answer({ prompt, password }) {
    const line = await onInput(prompt, { password, signal });
    if (signal.aborted) return;
    ended = typeof line !== 'string';
    if (line !== null && line !== undefined && typeof line !== 'string') fail('invalid_type', 'onInput', `a line or null wanted, not ${shown(line)}`);
    const said = Buffer.from(`${line}\n`);
    const parts = ended ? [{ eof: true }] : // nobody answers: the code hears that there is no more
      Array.from({ length: Math.ceil(said.length / ANSWER_BYTES) }, (_, i) => ({ base64: said.toString('base64', i * ANSWER_BYTES, (i + 1) * ANSWER_BYTES) }));
    for (const part of parts) await give(part);
  }
  /** Waits while what was given before has not been read. */
  async function give(part) {
    for (;;) {
      try {
        return await sidecar.request('run/stdin', { runId, ...part });
      } catch (error) {
        if (!error.retryable || signal.aborted) throw error;
        await new Promise((resolve) => { setTimeout(resolve, AGAIN_MS); });
      }
    }
  }
  return (question) => ended || answer(question).catch((error) => { if (!signal.aborted && error.reason !== 'gone') failed(error); });
}

/**
 * `method` with `params` -> ExecutionResult. What had begun when the signal came resolves, with the fault `cancelled` and what it
 * had written; what had not begun rejects with the signal's reason.
 */
async function call(sidecar, method, params, extras) {
  const { signal, encoding = 'utf8' } = extras;
  signal?.throwIfAborted();
  const runId = params.runId ?? newHandle('run');
  const streams = Boolean(extras.onStdout || extras.onStderr || extras.onDisplay || extras.onInput);
  const full = { ...params };
  if (method !== 'session/setup') full.runId = runId; // a setup has no name before it begins
  if (extras.stdin !== undefined) full.stdin = await textOf(sidecar, extras.stdin);
  if (extras.onInput) full.allowInput = true;
  if (encoding === 'buffer') full.encoding = 'base64';
  if (streams || extras.lossless) full.stream = extras.lossless ? 'lossless' : 'live';
  const stopping = stopper(signal);
  const out = deliverer(sidecar, runId, extras, stopping.stop);
  if (full.stream) sidecar.listen('runId', runId, out.take);
  try {
    const raw = await sidecar.request(method, full, stopping.signal);
    await out.end();
    return await executionResult(sidecar, raw, encoding);
  } catch (error) {
    if (error.reason === 'cancelled' && signal?.aborted) throw signal.reason;
    throw error;
  } finally {
    out.over();
    stopping.done();
    sidecar.unlisten('runId', runId);
  }
}

module.exports = { call };
