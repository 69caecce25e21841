"""The predicate language of task filters (MESSIAHS 5.4).

`predicates` is the door: text in, a predicate that can be judged out. Behind it stand, in the order of use, `scanning`
(words and limits), `parsing` (grammar.lark) into `syntax`, and the two ways to judge: `truth` and `class_truth`.
"""
