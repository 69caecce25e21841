"""The predicate language of task filters (MESSIAHS 5.4), and the policy files of owners around it.

Its rooms, each of which imports those before it:

- `predicate`: the language of task filters. `predicates` is its entry point: a text becomes a predicate that can be
  evaluated. Words and rules are defined once, in grammar.lark, and Lark reads every text by it (`parsing`): `words`
  finds the words by the terminals of the grammar, `limits` counts them before the parser sees them, `syntax` has the
  trees, and `error_messages` explains a refused text by what the parser would have accepted. `truth` evaluates a
  predicate over one description, `class_truth` over the classes of a vector; `cost` bounds the latter beforehand.
- `syntax`: the words, statements and trees of policy files, the problems in them (`problems`), and the one form in
  which `formatting` writes them. Its grammar imports the rules of predicates, and adds what only owners may write.
- `runtime`: the rules that a policy decides by. Their predicates become the same trees, over `readings` of several
  scopes; a condition also keeps its source text (`syntax.written`) for explanations (`explaining`).
- `compiler`: `files` is its entry point: every block of a policy file is read, checked, and becomes rules.
- `explaining`: why a whole policy decides as it does, and how many machines of a pool it leaves to a task.
- `policytest`: `files` is the entry point for `*.policytest` files. A trial, which is one test of a policy, is a list
  of steps (`trials`), run by `execution`; `explaining.coverage` names the rules that no trial reached.

A block of policy files has its rule in `syntax/grammar.lark` and, as far as it needs them, one file in each of
`runtime`, `compiler`, `explaining` and `policytest`; `syntax.blocks` lists the blocks and names these parts. Only a
block that makes a decision of its own adds a field to `runtime.compiled_policy`, too.
"""
