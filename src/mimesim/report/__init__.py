"""Reports: one self-contained HTML page or Markdown tables, made from files and nothing else.

`load` reads a run record, an episode file or a run folder; `record_page` and `episodes_page` turn it
into plain values to show; `html` is the only place that makes HTML; `tables` makes Markdown, `latex`
tables for papers. `grids` holds the tables of an evaluation for all of them.
"""
