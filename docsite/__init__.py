"""The documentation as a site: ``make docs`` writes it to ``site/``, and it opens from there without a server.

MkDocs (``mkdocs.yml``) renders the pages of ``docs/``; `hooks` adds what is generated from the package itself: the
reference (`reference`), the environment variables (`environment`), the IR of one kernel at every stage (`stages`) and
the source files that pages point to (`source_pages`). `navigation` has the table of contents of the site.
"""
