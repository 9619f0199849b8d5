"""What of a display reaches the notebook.

A notebook's page is the host's: a script in it can open a terminal through Jupyter's own interface, and a picture's
address carries data out of a box that has no network. So HTML is cleaned by an allow-list, SVG becomes a picture, in
which scripts do not run, Markdown becomes clean HTML, and forms that scripts of the page would interpret are withheld.
"""

import base64
import html
import json
from typing import Any, Dict, List, Mapping, Optional, Tuple

import nh3

from ..results import IMAGES

Bundle = Tuple[Dict[str, Any], Dict[str, Any]]
AS_THEY_ARE = ("text/plain", "text/latex", "application/json", *IMAGES)
MADE_HTML = ("text/html", "image/svg+xml", "text/markdown")  # the first that there is
PICTURES = tuple(f"data:{mime};base64," for mime in (*IMAGES, "image/svg+xml"))
TAGS = nh3.ALLOWED_TAGS - {"map", "area"}
STYLES = {  # none that loads something or leaves the cell's place
    "background-color", "border", "border-collapse", "color", "font-family", "font-size", "font-style", "font-weight",
    "height", "max-width", "padding", "text-align", "text-decoration", "vertical-align", "white-space", "width",
}  # fmt: skip


def shown(data: Mapping[str, str], metadata: Mapping[str, Any], policy: str) -> Bundle:
    """The data and metadata of a display, for a message of Jupyter."""
    if policy == "all":
        values = {mime: _decoded(mime, payload) for mime, payload in data.items()}
        kept = {mime: value for mime, value in values.items() if value is not None}
        return kept, {mime: metadata[mime] for mime in kept if mime in metadata}
    bundle = {mime: _decoded(mime, data[mime]) for mime in AS_THEY_ARE if mime in data}
    bundle = {mime: value for mime, value in bundle.items() if value is not None}
    made = next((made for made in (_as_html(mime, data.get(mime)) for mime in MADE_HTML) if made), None)
    if made is not None:
        bundle["text/html"] = made
    withheld = sorted(set(data) - set(AS_THEY_ARE) - ({*MADE_HTML} if made is not None else set()))
    if withheld and not set(bundle) - {"text/plain"}:
        bundle["text/html"] = _notice(withheld, bundle.get("text/plain", ""))
    return bundle, _sizes(bundle, metadata)


def clean_html(text: str) -> Optional[str]:
    """HTML without scripts, addresses that load by themselves, and anything that could hide or imitate the page's own. None:
    there is nothing left to see."""
    cleaned: str = nh3.clean(
        text,
        tags=TAGS,
        attributes={
            **nh3.ALLOWED_ATTRIBUTES,
            "*": {"style", "title", "lang", "dir"},
            "img": {"alt", "height", "src", "width"},
        },
        attribute_filter=_attribute,
        url_schemes={"http", "https", "mailto", "data"},
        filter_style_properties=STYLES,
    )
    return cleaned if ' src="' in cleaned or nh3.clean(cleaned, tags=set()).strip() else None


def _attribute(tag: str, name: str, value: str) -> Optional[str]:
    if name == "src":
        return value if tag == "img" and value.startswith(PICTURES) else None
    if name == "href":
        return value if tag == "a" and value.lower().startswith(("http://", "https://", "mailto:")) else None
    return None if name == "cite" else value


def _as_html(mime: str, payload: Optional[str]) -> Optional[str]:
    if payload is None:
        return None
    if mime == "image/svg+xml":
        return f'<img alt="" src="data:image/svg+xml;base64,{base64.b64encode(payload.encode()).decode()}">'
    if mime == "text/markdown":
        from markdown_it import MarkdownIt  # a tenth of what a kernel imports, for what few notebooks show

        payload = MarkdownIt("commonmark", {"html": False}).enable("table").render(payload)
    return clean_html(payload)


def _decoded(mime: str, payload: str) -> Any:
    """JSON travels decoded; what is none of it, or no message can hold, is None."""
    if mime != "application/json" and not mime.endswith("+json"):
        return payload
    try:
        value = json.loads(payload)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return None
    return value


def _sizes(bundle: Mapping[str, Any], metadata: Mapping[str, Any]) -> Dict[str, Any]:
    """The sizes of pictures; nothing else changes how a page shows something."""
    sizes: Dict[str, Any] = {}
    for mime in set(IMAGES) & set(bundle):
        given = metadata.get(mime, metadata)
        if isinstance(given, dict):
            numbers = {name: given[name] for name in ("width", "height") if _is_size(given.get(name))}
            if numbers:
                sizes[mime] = numbers
    return sizes


def _is_size(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 100_000


def _notice(withheld: List[str], text: Any) -> str:
    names = html.escape(", ".join(withheld))
    return (
        f"<pre>{html.escape(str(text))}</pre><p><em>kern: {names} withheld, it would act in this page with your rights"
        " (KERN_JUPYTER_DISPLAY=all shows it)</em></p>"
    )
