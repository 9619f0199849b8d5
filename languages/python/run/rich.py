"""display(), and what objects say about how they want to be shown."""
import sys

runner = sys.modules["_kern_runner"]
METHODS = (
    ("text/html", "_repr_html_"), ("text/markdown", "_repr_markdown_"), ("image/svg+xml", "_repr_svg_"),
    ("image/png", "_repr_png_"), ("image/jpeg", "_repr_jpeg_"), ("text/latex", "_repr_latex_"),
    ("application/json", "_repr_json_"), ("application/javascript", "_repr_javascript_"),
    ("application/pdf", "_repr_pdf_"),
)
LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$&-^_.+")
TYPES, BYTES = 32, (64 << 20) - (1 << 20)  # what the host takes of one frame, with room for the small parts
BINARY = ("image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf")


def method_of(value, name):
    # On the type: mocks, proxies and data frames answer any name that an instance is asked for.
    return getattr(value, name) if callable(getattr(type(value), name, None)) else None


def complain(error):
    """A representation that fails is no reason to fail the code, but the reader should know."""
    parts = [("name", runner.utf8(type(error).__qualname__)), ("phase", b"display")]
    try:
        parts.append(("message", runner.utf8(str(error)[:8192])))
    except Exception:
        pass
    runner.channel.send(runner.ERROR, parts)


def json_of(value):
    """Strict JSON: NaN and the infinities have no place in it and become null. Also: were there any?"""
    import json
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=str), False
    except ValueError:
        return json.dumps(finite(value), ensure_ascii=False, allow_nan=False, default=str), True


def finite(value):
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value


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


def add(bundle, metadata, mime, value):
    if not is_mime(mime):
        raise ValueError("%r is no mime type" % (mime,))
    if isinstance(value, tuple) and len(value) == 2:
        value, more = value
        if isinstance(more, dict):
            metadata.setdefault(mime, {}).update(more)
    if value is not None:
        bundle[mime] = encoded(mime, value, metadata)


def bundle_of(value):
    bundle, metadata = {}, {}
    try:
        method = method_of(value, "_repr_mimebundle_")
        found = method(include=None, exclude=None) if method else None
        if isinstance(found, tuple):
            found, more = found
            metadata.update(more or {})
        for mime, item in (found or {}).items():
            add(bundle, metadata, mime, item)
            if len(bundle) == TYPES - len(METHODS) - 1:
                break
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
    if "text/plain" not in bundle:
        bundle["text/plain"] = runner.text_of(value)
    return bundle, metadata


def send(kind, bundle, metadata, display_id):
    parts, room = [], BYTES
    for mime, data in list(bundle.items())[:TYPES]:
        room -= len(data)
        if room < 0:
            complain(ValueError("what is to be shown is larger than 63 MiB"))
            break
        parts.append((mime, data))
    if metadata:
        parts.append(("metadata", runner.utf8(json_of(metadata)[0])))
    if display_id:
        parts.append(("id", runner.utf8(str(display_id)[:32])))
    return runner.channel.send(kind, parts)


def show(kind, value, metadata=None, display_id=None, raw=False):
    if raw:
        bundle, own = {}, {}
        for mime, item in value.items():
            add(bundle, own, mime, item)
    else:
        method = method_of(value, "_ipython_display_") if display_id is None else None
        if method:
            try:
                method()
                return
            except Exception:
                pass  # made for a notebook that is not here; the other ways remain
        bundle, own = bundle_of(value)
    own.update(metadata or {})
    if not send(kind, bundle, own, display_id) and kind != runner.VALUE:
        try:
            print(bundle.get("text/plain", b"").decode("utf-8", "replace"))  # no channel, or a forked child
        except RuntimeError:
            pass  # a signal handler during a print


class DisplayHandle:
    def __init__(self, display_id):
        self.display_id = display_id

    def display(self, value, **options):
        display(value, display_id=self.display_id, **options)

    def update(self, value, **options):
        show(runner.UPDATE, value, options.get("metadata"), self.display_id, options.get("raw", False))

    def __repr__(self):
        return "<DisplayHandle display_id=%s>" % self.display_id


def display(*objects, display_id=None, metadata=None, raw=False, clear=False, include=None, exclude=None,
            transient=None):
    """Shows each object in its richest forms, in its place between what is printed."""
    if display_id is True:
        import posix
        display_id = posix.urandom(16).hex()
    if clear:
        runner.channel.send(runner.CLEAR, [("wait", b"")])
    if not objects and display_id:
        send(runner.DISPLAY, {}, metadata, display_id)
    for value in objects:
        show(runner.DISPLAY, value, metadata, display_id, raw)
    return DisplayHandle(display_id) if display_id else None
