"""Language models behind two protocols: endpoints, local and scripted ones, and reading their text."""
