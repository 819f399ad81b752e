"""The documentation site: `make docs` builds it into `docs/_build/html`."""

import alma

project = "alma"
author = "The alma authors"
release = version = alma.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

html_theme = "furo"
html_title = f"alma {release}"
