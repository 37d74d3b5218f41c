// Parses and evaluates expressions with GitHub's own package: JSON list of texts in, JSON list of outcomes out.
import { Lexer, Parser, Evaluator, data } from "@actions/expressions";

const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const { expressions, contexts, functions } = JSON.parse(Buffer.concat(chunks).toString());
const extra = functions.map(([name, minArgs, maxArgs]) => ({ name, description: "", minArgs, maxArgs }));
const values = JSON.parse(JSON.stringify(contexts.values), data.reviver);

function plain(value) {
  switch (value.kind) {
    case data.Kind.Null: return null;
    case data.Kind.Array: return value.values().map(plain);
    case data.Kind.Dictionary: return Object.fromEntries(value.pairs().map(({ key, value }) => [key, plain(value)]));
    case data.Kind.Number: return Number.isFinite(value.value) ? value.value : { number: String(value.value) };
    default: return value.value;
  }
}

console.log(JSON.stringify(expressions.map(text => {
  let parsed;
  try {
    parsed = new Parser(new Lexer(text).lex().tokens, contexts.names, extra).parse();
  } catch (error) {
    return { rejected: String(error.message) };
  }
  try {
    const result = new Evaluator(parsed, values).evaluate();
    return { value: plain(result), text: result.coerceString() };
  } catch (error) {
    return { failed: String(error.message) };
  }
})));
