// Paints texts with a TextMate grammar in the engine that editors use. Standard input is {"grammar": PATH, "texts": [...]};
// standard output has for each text and each of its lines [start, end, scope], counted in UTF-16 units of the line.
"use strict";
const fs = require("fs");
const oniguruma = require("vscode-oniguruma");
const textmate = require("vscode-textmate");

async function main() {
  const asked = JSON.parse(fs.readFileSync(0, "utf8"));
  await oniguruma.loadWASM(fs.readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm")).buffer);
  const registry = new textmate.Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async () => textmate.parseRawGrammar(fs.readFileSync(asked.grammar, "utf8"), asked.grammar),
  });
  const grammar = await registry.loadGrammar(JSON.parse(fs.readFileSync(asked.grammar, "utf8")).scopeName);
  console.log(JSON.stringify(asked.texts.map((text) => painted(grammar, text))));
}

function painted(grammar, text) {
  let state = textmate.INITIAL;
  return text.split("\n").map((line) => {
    const found = grammar.tokenizeLine(line, state);
    state = found.ruleStack;
    return found.tokens.map((token) => [token.startIndex, token.endIndex, token.scopes.slice(1).join(" ")]);
  });
}

main();
