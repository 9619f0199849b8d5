// display(), and how values want to be shown.
"use strict";
const fs = require("node:fs");
const util = require("node:util");

const SYMBOL = Symbol.for("Jupyter.display");
const TEXT = { depth: 4, maxArrayLength: 100, maxStringLength: 10000, breakLength: 80, colors: false };
const TEXT_MAX = 1 << 20, JSON_MAX = 1 << 20, TYPES = 32;
const BYTES = (64 << 20) - (1 << 20); // what the host takes of one frame, with room for the small parts
const METHODS = [["text/html", "_toHtml"], ["image/svg+xml", "_toSvg"], ["image/png", "_toPng"], ["image/jpeg", "_toJpg"],
	["text/markdown", "_toMarkdown"], ["text/latex", "_toLatex"]];
const BINARY = /^(image\/(png|jpeg|gif|webp)|application\/pdf)$/;
const MIME = /^[a-z0-9][a-z0-9!#$&^_.+-]*\/[a-z0-9][a-z0-9!#$&^_.+-]*$/i;
const { stringify } = JSON, { inspect, types } = util;

module.exports = ({ DISPLAY, UPDATE, CLEAR, ERROR, VALUE, send, described }) => {
	// A form that fails is no reason to fail the code, but the reader should know.
	function complain(error) {
		const [name, message] = described(error);
		send(ERROR, [["name", name.slice(0, 256)], ["message", message.slice(0, 8192)], ["phase", "display"]]);
	}

	function textOf(value) {
		let text;
		try {
			text = inspect(value, TEXT);
		} catch (error) {
			return `<a value that cannot be inspected: ${described(error)[0]}>`;
		}
		return text.length <= TEXT_MAX ? text : `${text.slice(0, TEXT_MAX)}... (${text.length - TEXT_MAX} more characters)`;
	}

	// Strict JSON has no place for NaN, the infinities and a BigInt: what became of them stands in the metadata.
	function jsonOf(value, notes) {
		return stringify(value, (key, item) => {
			if (typeof item === "bigint") {
				notes.bigintReplaced = true;
				return String(item);
			}
			if (typeof item === "number" && !Number.isFinite(item)) {
				notes.nanReplaced = true;
				return null;
			}
			return item;
		});
	}

	function bytesOf(value) {
		if (types.isUint8Array(value))
			return value;
		return types.isAnyArrayBuffer(value) ? new Uint8Array(value) : undefined;
	}

	function imageType(bytes) {
		const starts = (text, at = 0) => Buffer.from(bytes.buffer, bytes.byteOffset + at, Math.min(text.length,
			Math.max(bytes.length - at, 0))).latin1Slice() === text;
		if (starts("\x89PNG\r\n\x1a\n"))
			return "image/png";
		if (starts("\xff\xd8\xff"))
			return "image/jpeg";
		if (starts("GIF87a") || starts("GIF89a"))
			return "image/gif";
		if (starts("RIFF") && starts("WEBP", 8))
			return "image/webp";
		const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 512)).latin1Slice();
		return /^\s*(<\?xml[^>]*>\s*)?(<!--[^]*?-->\s*)?<svg[\s>]/.test(head) ? "image/svg+xml" : undefined;
	}

	function add(bundle, mime, data) {
		if (typeof mime !== "string" || mime.length > 127 || !MIME.test(mime))
			throw new TypeError(`${inspect(mime)} is no mime type`);
		if (data === undefined || data === null || bundle.count === TYPES)
			return;
		const notes = {}, bytes = bytesOf(data);
		if (bytes)
			data = bytes;
		else if (typeof data === "string" && BINARY.test(mime))
			data = Buffer.from(data.replace(/^data:[^,]*,/, ""), "base64");
		else if (typeof data !== "string" || mime === "application/json")
			data = jsonOf(data, notes) ?? "null";
		bundle.data[mime] = data;
		bundle.count++;
		if (Object.keys(notes).length)
			bundle.metadata[mime] = notes;
	}

	function addAll(bundle, found) {
		for (const [mime, data] of Object.entries(found ?? {}))
			add(bundle, mime, data);
	}

	// Things that answer to every name say nothing by answering to ours.
	function speaksFor(value) {
		return value !== null && (typeof value === "object" || typeof value === "function") && !types.isProxy(value) &&
			typeof value._kern_no_such_name_ === "undefined";
	}

	function addMethods(bundle, value) {
		if (typeof value._toMime === "function")
			addAll(bundle, value._toMime());
		for (const [mime, name] of METHODS) {
			if (!(mime in bundle.data) && typeof value[name] === "function")
				add(bundle, mime, value[name]());
		}
		if (typeof value.toSpec === "function") { // vega-lite's builder
			const spec = value.toSpec();
			const version = /vega-lite\/v(\d+)/.exec(spec?.$schema)?.[1];
			if (version)
				add(bundle, `application/vnd.vegalite.v${version}+json`, spec);
		}
		if (typeof value.outerHTML === "string")
			add(bundle, "text/html", value.outerHTML);
	}

	function isPlain(value) {
		if (Array.isArray(value))
			return true;
		const prototype = Object.getPrototypeOf(value);
		return prototype === null || prototype === Object.prototype;
	}

	function addPlain(bundle, value) {
		const notes = {};
		let text;
		try {
			text = jsonOf(value, notes);
		} catch {} // circular, too deep, or a getter of the code: its text has to do
		if (text === undefined || text.length > JSON_MAX)
			return;
		bundle.data["application/json"] = text;
		if (Object.keys(notes).length)
			bundle.metadata["application/json"] = notes;
	}

	function fill(bundle, value) {
		const bytes = bytesOf(value), mime = bytes && imageType(bytes);
		if (mime)
			add(bundle, mime, bytes);
		if (bytes)
			return;
		addMethods(bundle, value);
		if (bundle.count === 0 && isPlain(value))
			addPlain(bundle, value);
	}

	// The bundle, or a promise of one when the value's own method is asynchronous.
	function bundleOf(value) {
		const bundle = { data: {}, metadata: {}, count: 0 };
		const finish = () => {
			bundle.data["text/plain"] ??= textOf(value);
			return bundle;
		};
		const fail = (error) => {
			complain(error);
			return finish();
		};
		try {
			if (!speaksFor(value))
				return finish();
			if (typeof value[SYMBOL] !== "function") {
				fill(bundle, value);
				return finish();
			}
			const found = value[SYMBOL]();
			if (!types.isPromise(found)) {
				addAll(bundle, found);
				return finish();
			}
			return found.then((later) => { addAll(bundle, later); return finish(); }).catch(fail);
		} catch (error) {
			return fail(error);
		}
	}

	function emit(kind, bundle, id) {
		const parts = [];
		let room = BYTES;
		for (const [mime, data] of Object.entries(bundle.data)) {
			room -= typeof data === "string" ? Buffer.byteLength(data) : data.byteLength;
			if (room < 0) {
				complain(new RangeError("what is to be shown is larger than 63 MiB"));
				break;
			}
			parts.push([mime, data]);
		}
		if (Object.keys(bundle.metadata).length)
			parts.push(["metadata", jsonOf(bundle.metadata, {})]);
		if (id !== undefined)
			parts.push(["id", id]);
		if (!send(kind, parts) && kind !== VALUE) // no channel
			console.log(bundle.data["text/plain"] ?? "");
	}

	function show(kind, value, id) {
		const bundle = bundleOf(value);
		return types.isPromise(bundle) ? bundle.then((later) => emit(kind, later, id)) : emit(kind, bundle, id);
	}

	function idOf(id) {
		if (id !== undefined && (typeof id !== "string" || id === "" || Buffer.byteLength(id) > 128))
			throw new TypeError("display_id must be a string of 1 to 128 bytes");
		return id;
	}

	// A promise when the value's own method is asynchronous, else undefined.
	function display(value, { raw = false, display_id, update = false, metadata } = {}) {
		const kind = update ? UPDATE : DISPLAY, id = idOf(display_id);
		if (update && id === undefined)
			throw new TypeError("an update needs the display_id of what it replaces");
		if (!raw)
			return show(kind, value, id);
		const bundle = { data: {}, metadata: { ...metadata }, count: 0 };
		addAll(bundle, value);
		emit(kind, bundle, id);
	}

	function tagged(mime) {
		return (strings, ...values) => {
			const text = Array.isArray(strings) ? String.raw({ raw: strings }, ...values) : String(strings);
			return { [SYMBOL]: () => ({ [mime]: text }), toString: () => text };
		};
	}

	display.html = tagged("text/html");
	display.md = tagged("text/markdown");
	display.svg = tagged("image/svg+xml");
	display.image = (source) => {
		const bytes = typeof source === "string" ? fs.readFileSync(source) : bytesOf(source);
		const mime = bytes && imageType(bytes);
		if (!mime)
			throw new TypeError("no image: neither PNG, JPEG, GIF, WebP nor SVG");
		return { [SYMBOL]: () => ({ [mime]: mime === "image/svg+xml" ? Buffer.from(bytes).toString() : bytes }) };
	};
	display.clear = ({ wait = false } = {}) => void send(CLEAR, wait ? [["wait", ""]] : []);

	// The value of the code. A promise is one as long as somebody waits for it: its value is shown when node has nothing
	// left to do, and one that fails is node's to report.
	function value(result) {
		if (result === undefined)
			return;
		if (!types.isPromise(result)) {
			void show(VALUE, result);
			return;
		}
		process.once("beforeExit", () => {
			if (/^Promise \{ <(pending|rejected)>/.test(inspect(result, { depth: 0 })))
				return;
			void Promise.prototype.then.call(result, (later) => later !== undefined && show(VALUE, later));
		});
	}

	return { display, value, show, textOf };
};
