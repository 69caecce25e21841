"""The paper's predicates: text in, something that judges descriptions and classes out (MESSIAHS 5.4)."""
