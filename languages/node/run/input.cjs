// The stdin of cells that may ask, each of which has a pipe of its own. process.stdin is one stream for all of them as long as somebody
// reads it, so that a readline interface may live as long as the code likes. Questions tell the host what they ask for.
"use strict";
const fs = require("node:fs");
const net = require("node:net");
const Module = require("node:module");
const readline = require("node:readline");
const { Readable } = require("node:stream");
const { promisify } = require("node:util");

const POLL_MS = 10, AHEAD = 65536, NOTHING = Buffer.alloc(0);

module.exports = ({ announce }) => {
	const { readSync, readFileSync } = fs, soon = setImmediate;
	const never = new Int32Array(new SharedArrayBuffer(4));
	const questions = new Set(); // that are open
	let source; // of the cell at work, when it may ask: { fd, socket, rest, over }
	let stream, wanted; // process.stdin of those cells; it waits for a piece
	let empty; // that of the others: a stream for each, as it ends but once
	let byLine; // a question has been asked: a line at a time, or those behind an answer would be lost before they are asked for
	let answered = () => {}; // the last question has been closed
	let patiently; // of the kernel: an interrupt ends what it calls

	// ---- process.stdin ----

	class Stdin extends Readable {
		fd = 0;
		_read() {
			if (this !== stream)
				return; // of an earlier cell
			wanted = true;
			if (byLine)
				soon(deliver);
			else
				deliver();
		}
		ref() { return this; }
		unref() { return this; }
	}

	function stdin() {
		if (!source)
			return empty ??= ended();
		return stream ??= new Stdin();
	}

	function ended() {
		const one = new Stdin();
		one.push(null);
		return one;
	}

	function deliver() {
		if (!wanted || !source)
			return;
		let piece = null;
		if (source.rest.length > 0)
			piece = take(byLine ? source.rest.indexOf(10) + 1 || source.rest.length : source.rest.length);
		else if (!source.over)
			return listen(source);
		wanted = false;
		try {
			stream.push(piece);
		} catch (error) { // of a listener
			stream.read(0);
			throw error;
		}
	}

	function take(length) {
		const piece = source.rest.subarray(0, length);
		source.rest = source.rest.subarray(length);
		return piece;
	}

	function listen(from) {
		if (!from.socket) {
			from.socket = new net.Socket({ fd: from.fd, readable: true, writable: false, manualStart: true });
			from.socket.on("data", (data) => arrived(from, data));
			from.socket.on("error", () => {});
			from.socket.on("close", () => arrived(from));
		}
		from.socket.resume();
	}

	function arrived(from, data) {
		from.over ||= data === undefined;
		if (data)
			from.rest = Buffer.concat([from.rest, data]);
		if (from.rest.length > AHEAD)
			from.socket.pause();
		if (from === source)
			deliver();
	}

	// ---- without the event loop ----

	// Is there something now, or the end?
	function look(length) {
		if (source.rest.length > 0 || source.over)
			return true;
		const data = Buffer.alloc(Math.min(length, AHEAD));
		try {
			source.rest = data.subarray(0, readSync(source.fd, data));
			source.over = source.rest.length === 0;
			return true;
		} catch (error) {
			if (error.code !== "EAGAIN")
				throw error;
			return false;
		}
	}

	function read(target) {
		if (target.length > 0 && !look(target.length)) {
			announce("");
			patiently(() => {
				while (!look(target.length))
					Atomics.wait(never, 0, 0, POLL_MS);
			});
		}
		const length = Math.min(target.length, source.rest.length);
		target.set(take(length));
		return length;
	}

	function readSyncOfCell(fd, buffer, offset, length, position) {
		if (fd !== 0 || !source || !ArrayBuffer.isView(buffer))
			return Reflect.apply(readSync, this, arguments);
		if (typeof offset === "object")
			({ offset, length } = offset ?? {});
		offset ??= 0;
		return read(new Uint8Array(buffer.buffer, buffer.byteOffset + offset, length ?? buffer.byteLength - offset));
	}

	function readFileSyncOfCell(path, options) {
		if ((path !== 0 && path !== "/dev/stdin") || !source)
			return Reflect.apply(readFileSync, this, arguments);
		const pieces = [], piece = Buffer.alloc(AHEAD);
		for (let n; (n = read(piece)) > 0;)
			pieces.push(Buffer.from(piece.subarray(0, n)));
		const encoding = typeof options === "string" ? options : options?.encoding;
		return encoding && encoding !== "buffer" ? Buffer.concat(pieces).toString(encoding) : Buffer.concat(pieces);
	}

	// ---- questions of readline ----

	const isOurs = (lines) => lines.input instanceof Stdin;

	function check(lines) {
		if (!source)
			throw new Error("this cell may not ask for input: it was not run with allowInput");
		if (lines.input !== stream)
			throw new Error("the input of this interface has ended with its cell");
	}

	// It is closed by an answer, the end of the input, the caller's own signal, and with its cell: else it would take the answer
	// to the first question of a later one.
	function open(lines, theirs) {
		const controller = new AbortController();
		const question = { signal: controller.signal, done, stop, stopped: undefined };
		const unanswered = new Error("the input ended before the question was answered"); // with the frames of who asks
		const onClose = () => stop(unanswered);
		const onAbort = () => cancel(theirs.reason);
		function done() {
			questions.delete(question);
			for (const one of [lines, lines.input])
				one.removeListener("close", onClose);
			theirs?.removeEventListener("abort", onAbort);
			if (questions.size === 0)
				answered();
		}
		function cancel(reason) {
			const { output } = lines;
			done();
			lines.output = null; // readline would end the line of the question, which has not been printed
			controller.abort(reason);
			lines.output = output;
		}
		function stop(error) {
			question.stopped = error;
			cancel(error);
		}
		questions.add(question);
		for (const one of [lines, lines.input])
			one.once("close", onClose);
		theirs?.addEventListener("abort", onAbort);
		if (theirs?.aborted)
			onAbort();
		else if (lines.input.readableEnded || lines.input.destroyed)
			onClose();
		return question;
	}

	function adoptQuestions() {
		const Plain = readline.Interface.prototype, Promised = readline.promises.Interface.prototype;
		const lines = Object.getPrototypeOf(Plain), { prompt } = lines, { question } = Plain, promised = Promised.question;
		const custom = question[promisify.custom];

		lines.prompt = function (preserveCursor) {
			if (!source || this.input !== stream)
				return prompt.call(this, preserveCursor);
			if (this.paused)
				this.resume();
			byLine = true;
			announce(this.getPrompt());
		};

		Plain.question = function (query, options, callback) {
			if (!isOurs(this))
				return Reflect.apply(question, this, arguments);
			if (typeof options === "function")
				[options, callback] = [undefined, options];
			if (typeof callback !== "function")
				return question.call(this, query, options, callback);
			check(this);
			const asked = open(this, options?.signal);
			try {
				question.call(this, query, { ...options, signal: asked.signal }, (answer) => {
					asked.done();
					callback(answer);
				});
			} catch (error) {
				asked.done();
				throw error;
			}
		};

		Promised.question = async function (query, options) {
			if (!isOurs(this))
				return promised.call(this, query, options);
			check(this);
			const asked = open(this, options?.signal);
			try {
				return await promised.call(this, query, { ...options, signal: asked.signal });
			} catch (error) {
				throw asked.stopped ?? error;
			} finally {
				asked.done();
			}
		};

		Plain.question[promisify.custom] = function (query, options) {
			return (isOurs(this) ? Promised.question : custom).call(this, query, options);
		};
	}

	// ---- for the kernel ----

	function adopt(interruptibly) {
		patiently = interruptibly;
		Object.defineProperty(process, "stdin", { get: stdin, configurable: true, enumerable: true });
		fs.readSync = readSyncOfCell;
		fs.readFileSync = readFileSyncOfCell;
		adoptQuestions();
		Module.syncBuiltinESMExports();
	}

	// `path`: of the pipe, or undefined.
	function begin(path) {
		empty = undefined;
		if (path === undefined)
			return;
		source = { fd: fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK), rest: NOTHING, over: false };
		deliver(); // somebody may have waited since an earlier cell
	}

	// What has not been read is gone.
	function end() {
		for (const question of [...questions])
			question.stop(new Error("the cell has ended"));
		if (source?.socket)
			source.socket.destroy();
		else if (source)
			fs.closeSync(source.fd);
		source = undefined;
		const heard = stream && stream.listenerCount("data") + stream.listenerCount("readable") > 0;
		if (!heard || stream.readableLength > 0 || stream.readableEnded || stream.destroyed) {
			stream?.destroy();
			stream = undefined;
			wanted = byLine = false;
		}
	}

	// Undefined when no question is open.
	function untilAnswered() {
		return questions.size === 0 ? undefined : new Promise((resolve) => { answered = () => soon(resolve); });
	}

	return { adopt, begin, end, untilAnswered };
};
