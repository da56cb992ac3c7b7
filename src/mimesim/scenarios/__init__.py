"""Who the customer is, what is hidden, and what the policy says.

`types` holds the shapes, `manual` loads a company's manual, `worlds` is where its cases come from
(`records` for ours, `abcd` for a user's copy of ABCD), `procedure` says what a case calls for
(verdict, gold steps, required fields), `limits` the hard rules, `replay` what was said before.
`compose` makes rows, `invariants` checks them, `rows` and `views` give them other shapes.
`behaviors` is the registry of the 13 behaviors and of those of extensions; `behavior_page` writes
the page of the docs about them. `fields` knows how agents ask for a field.
"""
