"""The predicate language of task filters (MESSIAHS 5.4), and the policy files of owners around it.

`predicates` is the door for task filters: text in, a predicate that can be judged out. Behind it stand, in the order of
use, `scanning` (words and limits), `parsing` (grammar.lark) into `syntax`, and the two ways to judge: `truth` and
`class_truth`.

`policy_files` is the door for policy files. Its predicates end as the same trees, over `readings` of several scopes.
A condition also keeps how its owner wrote it (`written`), for those who ask why: `explaining` over facts,
`explaining_classes` and `explaining_pool` over many machines.

`trial_files` is the door for `*.policytest` files. A trial, which is one test of a policy, is a list of steps
(`trials`), tried by `trying`; `coverage` says which rules were left untried.
"""
