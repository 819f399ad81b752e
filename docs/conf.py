"""The documentation site: `make docs` builds it into `docs/_build/html`."""

import hashlib
import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

import alma

project = "alma"
author = "The alma developers"
release = version = alma.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc"]
exclude_patterns = ["_build", "_cache"]

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4

autodoc_default_options = {"members": True, "undoc-members": True, "member-order": "bysource"}
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
maximum_signature_line_length = 80
default_role = "code"  # docstrings write code as in Markdown


def fingerprint(package):
    """Changes with every file of the package."""
    files = sorted(file for file in package.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


# A notebook is executed anew when it or the package has changed.
nb_execution_mode = "cache"
nb_execution_cache_path = str(Path(__file__).parent / "_cache" / fingerprint(Path(alma.__file__).parent))
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 600
nb_merge_streams = True
nb_output_stderr = "remove"  # progress of training


html_theme = "furo"
html_title = f"alma {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]


SPELLINGS = {
    r"\bjaxlib\.[\w.]*Array\b": "Array",
    r"~jaxtyping\.": "",
    r"Key\[Array, ''\] \| UInt32\[Array, '2'\] \| UInt32\[Array, '4'\]": "PRNGKeyArray",
    r"(\w+)\[Array, ('[^']*')\] \| \1\[ndarray, \2\]": r"\1[Array, \2]",
}
"""How types of arrays are written, instead of what Python calls them."""


def spell(text):
    for pattern, replacement in SPELLINGS.items():
        text = re.sub(pattern, replacement, text)
    return text


def spell_signature(app, what, name, thing, options, signature, returns):
    """Types of arrays in signatures."""
    if signature:
        return spell(signature), returns and spell(returns)
    return None


def spell_attributes(app, doctree):
    """Types of arrays everywhere else."""
    for signature in doctree.findall(addnodes.desc_signature):
        for text in list(signature.findall(nodes.Text)):
            text.parent.replace(text, nodes.Text(spell(text)))


def setup(app):
    app.connect("autodoc-process-signature", spell_signature)
    app.connect("doctree-read", spell_attributes)
