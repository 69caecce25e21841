"""The predicate language of task filters (MESSIAHS 5.4), and the policy files of owners around it.

The rooms, each of which knows those before it:

- `predicate`: `predicates` is the door for task filters: text in, a predicate that can be judged out. Its words and
  rules are defined once, in grammar.lark, and Lark reads every text by it (`parsing`): `words` finds the words by the
  terminals of the grammar, `limits` counts them before the parser sees them, the trees are those of `syntax`, and
  `mistakes` explains a refused text by what the parser would have accepted. Two ways to judge follow: `truth` and
  `class_truth`, with the `cost` of the latter.
- `text`: the words, statements and trees of policy files, their mistakes (`problems`), and the one form in which
  `formatting` writes them.
- `rules`: what a policy decides by. Its predicates end as the same trees, over `readings` of several scopes; a
  condition also keeps how its owner wrote it (`text.written`), for those who ask why (`explaining`).
- `blocks`: `files` is the door for policy files: every block is read, checked, and becomes rules.
- `explaining`: why a whole policy decides as it does, and how many machines of a pool it leaves to a task.
- `trials`: `files` is the door for `*.policytest` files. A trial, which is one test of a policy, is a list of steps
  (`trials`), tried by `trying`; `explaining.coverage` says which rules were left untried.
"""
