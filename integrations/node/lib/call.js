// One call with output: sends it, hands its notifications to the callbacks in order, and makes its result.
'use strict';

const { bytesOf, textOf } = require('./text.js');
const { executionResult, resultOf } = require('./result.js');
const { newHandle } = require('./sidecar.js');

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
  const { onStdout, onStderr, onDisplay, lossless } = extras;
  let tail = Promise.resolve();
  let failure = null;
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
    }
  }
  function fail(error) {
    failure ??= { error };
    stop();
  }
  return {
    take: (method, params) => { tail = tail.then(() => deliver(method, params)).catch(fail); },
    async end() {
      await tail;
      if (failure) throw failure.error;
    },
  };
}

/**
 * `method` with `params` -> ExecutionResult. What had begun when the signal came resolves, with the fault `cancelled` and what it
 * had written; what had not begun rejects with the signal's reason.
 */
async function call(sidecar, method, params, extras) {
  const { signal, encoding = 'utf8' } = extras;
  signal?.throwIfAborted();
  const runId = params.runId ?? newHandle('run');
  const streams = Boolean(extras.onStdout || extras.onStderr || extras.onDisplay);
  const full = { ...params };
  if (method !== 'session/setup') full.runId = runId; // a setup has no name before it begins
  if (extras.stdin !== undefined) full.stdin = await textOf(sidecar, extras.stdin);
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
    stopping.done();
    sidecar.unlisten('runId', runId);
  }
}

module.exports = { call };
