"""Who the customer is, what is hidden, and what the policy says.

`types` holds the shapes, `manual` loads a company's manual, `procedure` says what a case calls
for (verdict, gold steps, required fields), `limits` the hard rules, `records` and `compose` make
rows, `invariants` checks them, `behaviors` is the registry of the 13 behaviors, `fields` knows how
agents ask for a field.
"""
