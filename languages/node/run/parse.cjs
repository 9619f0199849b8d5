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

function parse(source) {
	try {
		return acorn.parse(source, OPTIONS);
	} catch {
		return undefined;
	}
}

function isLoose(expression) {
	return LOOSE.has(expression.type) || (expression.type === "BinaryExpression" && LOOSE_OPERATORS.has(expression.operator));
}

// The source, whose last expression is handed to `taker`[Symbol.hasInstance]; undefined when the last statement is none.
// All that is added stands in a line behind the last one (instanceof takes its left side as it is), so that lines, columns
// and what node quotes in messages stay as they were; but for `;(` where operators bind less tightly.
function withValue(source, taker) {
	const last = parse(source)?.body.at(-1);
	if (last?.type !== "ExpressionStatement")
		return undefined;
	const { expression } = last;
	if (expression.type === "AssignmentExpression" && expression.left.type === "Identifier")
		return `${source}\n;${expression.left.name} instanceof ${taker}`;
	const end = source[last.end - 1] === ";" && last.end > expression.end ? last.end - 1 : last.end;
	const rest = source.slice(end).replace(/^;/, " ");
	if (!isLoose(expression))
		return `${source.slice(0, end)}${rest}\ninstanceof ${taker}`;
	return `${source.slice(0, expression.start)};(${source.slice(expression.start, end)}${rest}\n) instanceof ${taker}`;
}

module.exports = () => ({ parse, withValue });
