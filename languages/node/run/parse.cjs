// Where the value of a piece of code is: the one thing that takes a parser.
"use strict";
const acorn = require("./acorn.js");

// Whatever node would take as a script, a module or a cell; node itself says what is wrong with it.
const OPTIONS = {
	ecmaVersion: "latest", preserveParens: true, allowHashBang: true, allowReturnOutsideFunction: true,
	allowAwaitOutsideFunction: true, allowImportExportEverywhere: true, allowSuperOutsideMethod: true,
};
// They bind less tightly than instanceof.
const LOOSE = new Set(["ArrowFunctionExpression", "AssignmentExpression", "ConditionalExpression", "LogicalExpression",
	"SequenceExpression", "YieldExpression"]);
const LOOSE_OPERATORS = new Set(["==", "!=", "===", "!==", "&", "|", "^"]);

// The tree, or an object with what is `wrong`.
function parse(source) {
	try {
		return acorn.parse(source, OPTIONS);
	} catch (wrong) {
		return { wrong };
	}
}

function isLoose(expression) {
	return LOOSE.has(expression.type) || (expression.type === "BinaryExpression" && LOOSE_OPERATORS.has(expression.operator));
}

// Replaces the pieces of a text, [start, end, by], in order of their starts.
function edited(source, edits) {
	let text = "", at = 0;
	for (const [start, end, by] of edits) {
		text += source.slice(at, start) + by;
		at = end;
	}
	return text + source.slice(at);
}

// What hands the value of the statement `last` to `taker`[Symbol.hasInstance]: edits, and a tail for the end of the text.
// All that is added stands in a line behind the last one (instanceof takes its left side as it is), so that lines, columns
// and what node quotes in messages stay as they were; but for `;(` where operators bind less tightly.
function handover(source, last, taker) {
	const { expression } = last;
	if (expression.type === "AssignmentExpression" && expression.left.type === "Identifier")
		return { edits: [], tail: `\n;${expression.left.name} instanceof ${taker}` };
	const edits = isLoose(expression) ? [[expression.start, expression.start, ";("]] : [];
	if (source[last.end - 1] === ";" && last.end > expression.end)
		edits.push([last.end - 1, last.end, " "]);
	return { edits, tail: `\n${edits[0]?.[2] === ";(" ? ") " : ""}instanceof ${taker}` };
}

// The source, whose last expression is handed over; undefined when the last statement is none.
function withValue(source, taker) {
	const last = parse(source).body?.at(-1);
	if (last?.type !== "ExpressionStatement")
		return undefined;
	const { edits, tail } = handover(source, last, taker);
	return edited(source, edits) + tail;
}

// ---- cells: what they declare at the top level is there in the next one, and may be declared again ----

// Is there an await that is not in a function?
function awaits(node) {
	if (Array.isArray(node))
		return node.some(awaits);
	if (!node || typeof node.type !== "string" || /Function/.test(node.type))
		return false;
	if (node.type === "AwaitExpression" || node.type === "ImportDeclaration" || (node.type === "ForOfStatement" && node.await))
		return true;
	return Object.values(node).some((child) => child && typeof child === "object" && awaits(child));
}

function namesOf(pattern) {
	switch (pattern?.type) {
	case "Identifier": return [pattern.name];
	case "ObjectPattern": return pattern.properties.flatMap((property) => namesOf(property.value ?? property.argument));
	case "ArrayPattern": return pattern.elements.flatMap(namesOf);
	case "AssignmentPattern": return namesOf(pattern.left);
	case "RestElement": return namesOf(pattern.argument);
	default: return [];
	}
}

// In the function that an await needs, a declaration becomes an assignment to globals of as many characters.
function assignments(node) {
	const brace = node.declarations[0].id.type === "ObjectPattern", { kind, start } = node;
	const edits = [[start, start + kind.length, ";" + " ".repeat(kind.length - 2) + (brace ? "(" : " ")]];
	for (const { id, init } of node.declarations)
		if (!init)
			edits.push([id.end, id.end, " = undefined"]);
	const { end } = node.declarations.at(-1);
	if (brace)
		edits.push([end, end, ")"]);
	return edits;
}

function importCall(source, node) {
	const raw = (part) => source.slice(part.start, part.end);
	const attributes = (node.attributes ?? []).map(({ key, value }) => `${raw(key)}: ${raw(value)}`);
	const call = `await import(${raw(node.source)}${attributes.length ? `, { with: { ${attributes.join(", ")} } }` : ""})`;
	const space = node.specifiers.find(({ type }) => type === "ImportNamespaceSpecifier");
	const named = node.specifiers.filter((specifier) => specifier !== space)
		.map(({ imported, local }) => `${imported ? raw(imported) : "default"}: ${local.name}`);
	const target = (named.length ? `{ ${named.join(", ")} } = ` : "") + (space ? `${space.local.name} = ` : "");
	const text = raw(node);
	return `;(${target}${call});` + "\n".repeat(text.split("\n").length - 1);
}

function declared(source, node, inFunction) {
	switch (node.type) {
	case "VariableDeclaration": {
		const names = node.declarations.flatMap(({ id }) => namesOf(id));
		if (!/^(var|let|const)$/.test(node.kind))
			return [[], []];
		if (inFunction)
			return [names, assignments(node)];
		return [[], [[node.start, node.start + node.kind.length, "var".padEnd(node.kind.length)]]];
	}
	case "ClassDeclaration":
		return [[node.id.name], [[node.start, node.start, node.id.name + "="], [node.end, node.end, ";"]]];
	case "ImportDeclaration":
		return [node.specifiers.map(({ local }) => local.name), [[node.start, node.end, importCall(source, node)]]];
	default:
		return [[], []];
	}
}

// How to run a cell as a script: its text, the globals that must be there before, and by how much its first line is shifted.
function cell(source, taker) {
	const tree = parse(source);
	if (tree.wrong)
		return tree;
	const inFunction = awaits(tree.body), last = tree.body.at(-1), names = [], edits = [];
	let prefix = "", tail = "";
	for (const node of tree.body) {
		const [found, changes] = declared(source, node, inFunction);
		names.push(...found);
		edits.push(...changes);
		if (inFunction && node.type === "FunctionDeclaration")
			prefix += `globalThis.${node.id.name}=${node.id.name};`;
	}
	if (last?.type !== "ExpressionStatement") {
		tail = "\n;void 0";
	} else if (inFunction) {
		const value = handover(source, last, taker);
		edits.push(...value.edits);
		tail = value.tail;
	}
	if (!inFunction)
		return { text: edited(source, edits) + tail, names, shift: 0 };
	if (source.startsWith("#!"))
		edits.unshift([0, 2, "//"]);
	prefix = "(async()=>{" + prefix;
	return { text: `${prefix}${edited(source, edits)}${tail}\n;return ${taker}.value})()`, names, shift: prefix.length };
}

module.exports = () => ({ withValue, cell });
