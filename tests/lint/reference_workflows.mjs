// Reads workflows with GitHub's own parser: JSON list of texts in; for each its errors and its expressions with places.
import { register } from "node:module";

// The package imports JSON without the attribute that Node asks for.
const hook = `export async function load(url, context, next) {
  if (!url.endsWith(".json")) return next(url, context);
  return next(url, { ...context, importAttributes: { type: "json" }, importAssertions: { type: "json" } });
}`;
register("data:text/javascript," + encodeURIComponent(hook));
const { parseWorkflow, NoOperationTraceWriter } = await import("@actions/workflow-parser");

const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);

function expressions(token, found) {
  if (!token) return;
  if (token.isExpression) {
    for (const each of token.originalExpressions ?? [token]) {
      found.push([each.range.start.line, each.range.start.column, each.range.end.line, each.range.end.column]);
    }
  } else if (!token.isScalar) {
    for (let index = 0; index < token.count; index++) {
      const item = token.get(index);
      if (item.key) {
        expressions(item.key, found);
        expressions(item.value, found);
      } else {
        expressions(item, found);
      }
    }
  }
}

console.log(JSON.stringify(JSON.parse(Buffer.concat(chunks).toString()).map(content => {
  const { context, value } = parseWorkflow({ name: "w.yml", content }, new NoOperationTraceWriter());
  const found = [];
  expressions(value, found);
  return { errors: context.errors.getErrors().map(error => error.message), expressions: found };
})));
