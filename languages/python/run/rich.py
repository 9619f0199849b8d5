"""display(), and what objects say about how they want to be shown."""
import sys

runner = sys.modules["_kern_runner"]
METHODS = (
    ("text/html", "_repr_html_"), ("text/markdown", "_repr_markdown_"), ("image/svg+xml", "_repr_svg_"),
    ("image/png", "_repr_png_"), ("image/jpeg", "_repr_jpeg_"), ("text/latex", "_repr_latex_"),
    ("application/json", "_repr_json_"), ("application/javascript", "_repr_javascript_"),
    ("application/pdf", "_repr_pdf_"),
)
LIBRARIES = frozenset(("PIL", "altair", "matplotlib", "pandas", "plotly", "polars"))  # libraries.py knows them
LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$&-^_.+")
TYPES, BYTES = 32, (64 << 20) - (1 << 20)  # what the host takes of one frame, with room for the small parts
BINARY = ("image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf")
DEPTH = 100  # of JSON
ID = 128  # bytes, as the host takes it


def method_of(value, name):
    # Of the classes: mocks, proxies and data frames answer any name that an instance or a metaclass is asked for.
    if any(name in vars(kind) for kind in type(value).__mro__):
        if callable(getattr(type(value), name, None)):
            return getattr(value, name)
    return None


def complain(error):
    """A representation that fails."""
    runner.part("errors").beside(error, "display", error.__traceback__)


def plain(value):
    """What JSON has no word for, by its own methods, so that no library is imported for it."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        import binascii
        return binascii.b2a_base64(bytes(value), newline=False).decode()
    if isinstance(value, (set, frozenset)):
        return list(value)
    numpy = str(type(value).__module__).partition(".")[0] == "numpy"
    method = method_of(value, "tolist" if numpy else "isoformat")
    return method() if method else str(value)


def json_of(value):
    """Strict JSON: NaN and the infinities have no place in it and become null. Also: were there any?"""
    import json
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=plain), False
    except (TypeError, ValueError) as error:  # the former: of a key that is no string
        text = json.dumps(finite(value), ensure_ascii=False, allow_nan=False)
        return text, isinstance(error, ValueError)


def finite(value, depth=0):
    if depth > DEPTH:
        raise ValueError("JSON that is deeper than %d, or contains itself" % DEPTH) from None
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): finite(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item, depth + 1) for item in value]
    return finite(plain(value), depth + 1)


def encoded(mime, value, metadata):
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, str):
        if mime in BINARY:
            import binascii
            return binascii.a2b_base64(value)
        return runner.utf8(value)
    text, replaced = json_of(value)
    if replaced:
        metadata.setdefault(mime, {})["nanReplaced"] = True
    return runner.utf8(text)


def is_mime(name):
    main, slash, sub = name.partition("/") if isinstance(name, str) else ("", "", "")
    return len(name) < 128 and all(part[:1].isalnum() and LETTERS.issuperset(part) for part in (main, sub))


def merge(metadata, more):
    """Of two dicts for one mime type both stay."""
    for key, value in (more or {}).items():
        if isinstance(value, dict) and isinstance(metadata.get(key), dict):
            metadata[key].update(value)
        else:
            metadata[key] = value


def add(bundle, metadata, mime, value):
    if not is_mime(mime):
        raise ValueError("%r is no mime type" % (mime,))
    if isinstance(value, tuple) and len(value) == 2:
        value, more = value
        if isinstance(more, dict):
            merge(metadata, {mime: more})
    if value is not None:
        bundle[mime] = encoded(mime, value, metadata)


def add_all(bundle, metadata, found):
    if isinstance(found, tuple):
        found, more = found
        merge(metadata, more)
    for mime, item in (found or {}).items():
        if len(bundle) < TYPES - len(METHODS) - 1:
            add(bundle, metadata, mime, item)


def library_form(value):
    """What we know better than the object, or None."""
    if LIBRARIES.isdisjoint(str(kind.__module__).partition(".")[0] for kind in type(value).__mro__):
        return None
    return runner.part("libraries").form_of(value)


def own_forms(value, bundle, metadata, include, exclude):
    """Whatever the object offers. A form that raises is left out."""
    try:
        method = method_of(value, "_repr_mimebundle_")
        if method:
            add_all(bundle, metadata, method(include=include, exclude=exclude))
    except Exception as error:
        complain(error)
    for mime, name in METHODS:
        if mime in bundle:
            continue
        try:
            method = method_of(value, name)
            if method:
                add(bundle, metadata, mime, method())
        except Exception as error:
            complain(error)


def bundle_of(value, known=None, include=None, exclude=None):
    """`known`: of libraries.py, in addition to the object's own forms or, when it says so, in their place."""
    bundle, metadata = {}, {}
    alone = False
    if known:
        try:
            found, alone = known(value)
            add_all(bundle, metadata, found)
        except Exception as error:
            alone = False
            complain(error)
    if not alone:
        own_forms(value, bundle, metadata, include, exclude)
    if "text/plain" not in bundle:
        bundle["text/plain"] = runner.text_of(value)
    return bundle, metadata


def chosen(bundle, include, exclude):
    return {mime: data for mime, data in bundle.items()
            if (not include or mime in include) and (not exclude or mime not in exclude)}


def id_of(display_id):
    text = runner.utf8(str(display_id))
    if len(text) > ID:
        raise ValueError("a display_id has at most %d bytes" % ID)
    return text


def send(kind, bundle, metadata, display_id=None, figure=False):
    parts, room = [], BYTES
    for mime, data in list(bundle.items())[:TYPES]:
        room -= len(data)
        if room < 0:
            complain(ValueError("what is to be shown is larger than 63 MiB"))
            break
        parts.append((mime, data))
    try:
        if metadata:
            parts.append(("metadata", runner.utf8(json_of(metadata)[0])))
    except Exception as error:
        complain(error)
    if display_id:
        parts.append(("id", id_of(display_id)))
    if figure:
        parts.append(("figure", b""))
    return runner.channel.send(kind, parts)


def show(kind, value, metadata=None, display_id=None, raw=False, include=None, exclude=None):
    known = None
    if raw:
        bundle, own = {}, {}
        add_all(bundle, own, value)
    else:
        try:
            known = library_form(value)
            method = None if known else method_of(value, "_ipython_display_")
            if method:
                method()
                return
        except Exception as error:  # the other ways remain
            complain(error)
        bundle, own = bundle_of(value, known, include, exclude)
    bundle = chosen(bundle, include, exclude)
    if not bundle:
        return
    merge(own, metadata)
    figure = kind == runner.DISPLAY and getattr(known, "figure", False)
    if not send(kind, bundle, own, display_id, figure) and kind != runner.VALUE:
        try:
            print(bundle.get("text/plain", b"").decode("utf-8", "replace"))  # no channel, or a forked child
        except RuntimeError:
            pass  # a signal handler during a print
    if kind == runner.VALUE and getattr(known, "figure", False):
        sys.modules["_kern_figures"].close(value)  # or it is shown again at the end


class DisplayHandle:
    def __init__(self, display_id=None):
        self.display_id = display_id or new_id()

    def display(self, value, **options):
        display(value, display_id=self.display_id, **options)

    def update(self, value, **options):
        update_display(value, display_id=self.display_id, **options)

    def __repr__(self):
        return "<DisplayHandle display_id=%s>" % self.display_id


def new_id():
    import posix
    return posix.urandom(16).hex()


def display(*objects, display_id=None, metadata=None, raw=False, clear=False, include=None, exclude=None,
            transient=None):
    """Shows each object in its richest forms, in its place between what is printed."""
    display_id = display_id or (transient or {}).get("display_id")
    if display_id is True:
        display_id = new_id()
    if clear:
        clear_output(wait=True)
    if not objects and display_id:
        send(runner.DISPLAY, {}, metadata, display_id)
    for value in objects:
        show(runner.DISPLAY, value, metadata, display_id, raw, include, exclude)
    return DisplayHandle(display_id) if display_id else None


def update_display(value, *, display_id, metadata=None, raw=False, include=None, exclude=None, transient=None):
    """Replaces whatever was shown with that id; shows nothing new."""
    show(runner.UPDATE, value, metadata, display_id, raw, include, exclude)


def clear_output(wait=False):
    """Takes away what the code has shown (not what it has printed); wait: when something else is shown."""
    runner.channel.send(runner.CLEAR, [("wait", b"")] if wait else [])


def publish_display_data(data, metadata=None, *, transient=None, update=False, **ignored):
    """The bundle as it is."""
    show(runner.UPDATE if update else runner.DISPLAY, data, metadata, (transient or {}).get("display_id"), raw=True)
