"""IPython.display where there is no IPython: the names that people write out of habit. With IPython its functions
are made to show here, because without its shell they only print."""
import sys

runner = sys.modules["_kern_runner"]
rich = runner.part("rich")
from_rich = ("DisplayHandle", "clear_output", "display", "publish_display_data", "update_display")
DisplayHandle, clear_output, display, publish_display_data, update_display = (getattr(rich, name) for name in from_rich)


def adopt(module):
    """The functions of the real IPython.display."""
    for name in from_rich:
        if name in vars(module):
            setattr(module, name, getattr(rich, name))


def fill(module):
    """One of the modules that we stand in for."""
    names = {name: value for name, value in globals().items() if getattr(value, "__module__", None) == __name__}
    module.__dict__.update(names, **{name: getattr(rich, name) for name in from_rich})
    for name in ("adopt", "fill", "escape", "shown_as"):
        del module.__dict__[name]
    if module.__name__ == "IPython":
        module.__dict__.update(version_info=(8, 0, 0, ""), __version__="8.0.0")  # whose interface this is
        import IPython.core.display_functions  # noqa: F401
        import IPython.display  # noqa: F401


def get_ipython():
    """None: there is no shell. Libraries ask this to find out."""


def escape(text):
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


class DisplayObject:
    """Data, or a file, or an address, which is never fetched."""
    mode = "r"

    def __init__(self, data=None, url=None, filename=None, metadata=None):
        if isinstance(data, str) and url is None and filename is None and self.is_place(data):
            data, url, filename = None, *((data, None) if "://" in data[:8] else (None, data))
        elif type(data).__module__ == "pathlib" or type(data).__module__.startswith("pathlib."):
            data, filename = None, str(data)
        self.data, self.url, self.filename, self.metadata = data, url, filename, metadata or {}
        if data is None and filename is not None:
            self.reload()

    def is_place(self, text):
        return False

    def reload(self):
        with open(self.filename, self.mode, **({} if "b" in self.mode else {"encoding": "utf-8"})) as file:
            self.data = file.read()

    def __repr__(self):
        return "<IPython.core.display.%s object>" % type(self).__name__


class TextDisplayObject(DisplayObject):
    def with_metadata(self, data=None):
        data = self.data if data is None else data
        return (data, self.metadata) if self.metadata else data


class HTML(TextDisplayObject):
    def _repr_html_(self):
        return self.with_metadata()

    def __html__(self):
        return self.data


class Markdown(TextDisplayObject):
    def _repr_markdown_(self):
        return self.with_metadata()


class Latex(TextDisplayObject):
    def _repr_latex_(self):
        return self.with_metadata()


class Math(TextDisplayObject):
    def _repr_latex_(self):
        return self.with_metadata("$\\displaystyle %s$" % self.data.strip("$"))


class Pretty(TextDisplayObject):
    def __repr__(self):
        return self.data


class SVG(DisplayObject):
    def is_place(self, text):
        return "<" not in text

    def _repr_svg_(self):
        return self.data


class Code(TextDisplayObject):
    def __init__(self, data=None, url=None, filename=None, language=None):
        self.language = language
        super().__init__(data, url, filename)

    def _repr_html_(self):
        return '<pre><code class="language-%s">%s</code></pre>' % (escape(self.language or "text"), escape(self.data))

    def __repr__(self):
        return self.data


class JSON(DisplayObject):
    def __init__(self, data=None, url=None, filename=None, expanded=False, metadata=None, root="root", **more):
        super().__init__(data, url, filename, {"expanded": expanded, "root": root, **(metadata or {}), **more})
        if isinstance(self.data, str):
            import json
            self.data = json.loads(self.data)

    def _repr_json_(self):
        return self.data, self.metadata


class Javascript(TextDisplayObject):
    def __init__(self, data=None, url=None, filename=None, lib=None, css=None):
        super().__init__(data, url, filename)
        self.lib = [lib] if isinstance(lib, str) else lib or []
        self.css = [css] if isinstance(css, str) else css or []

    def _repr_javascript_(self):
        return self.data


class Image(DisplayObject):
    mode = "rb"
    STARTS = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8", "image/jpeg"), (b"GIF8", "image/gif"),
              (b"RIFF", "image/webp"), (b"<svg", "image/svg+xml"), (b"<?xml", "image/svg+xml"))

    def __init__(self, data=None, url=None, filename=None, format=None, embed=None, width=None, height=None,
                 retina=False, unconfined=False, metadata=None, alt=None):
        self.format, self.width, self.height, self.alt = format, width, height, alt
        super().__init__(data, url, filename, metadata)
        if isinstance(self.data, str) and self.format != "svg":
            import binascii
            self.data = binascii.a2b_base64(self.data)

    def is_place(self, text):
        return len(text) < 4096 and not text.startswith(("iVBORw0KG", "/9j/", "R0lGOD", "UklGR", "<"))

    def _repr_mimebundle_(self, include=None, exclude=None):
        more = {name: value for name, value in (("width", self.width), ("height", self.height), ("alt", self.alt))
                if value is not None}
        if self.data is None:
            extra = "".join(' %s="%s"' % item for item in ((name, escape(value)) for name, value in more.items()))
            return {"text/html": '<img src="%s"%s/>' % (escape(self.url), extra)}
        data = self.data if isinstance(self.data, (bytes, bytearray)) else str(self.data).encode()
        named = {"jpg": "image/jpeg", "svg": "image/svg+xml"}.get(self.format, "image/%s" % (self.format or "png"))
        mime = next((mime for start, mime in self.STARTS if data.lstrip()[:8].startswith(start)), named)
        return {mime: data}, {mime: {**self.metadata, **more}}


class IFrame:
    def __init__(self, src, width, height, extras=None, **params):
        if params:
            from urllib.parse import urlencode
            src += "?" + urlencode(params)
        self.src, self.width, self.height, self.extras = src, width, height, extras or []

    def _repr_html_(self):
        return '<iframe width="%s" height="%s" src="%s" frameborder="0" allowfullscreen %s></iframe>' % (
            escape(self.width), escape(self.height), escape(self.src), " ".join(self.extras))

    def __repr__(self):
        return "<IPython.lib.display.IFrame object>"


class YouTubeVideo(IFrame):
    def __init__(self, id, width=400, height=300, **params):
        super().__init__("https://www.youtube.com/embed/%s" % id, width, height, **params)


class Media(DisplayObject):
    """Sound or a moving picture: an element of HTML with the data in it."""
    mode = "rb"
    element = kind = ""

    def is_place(self, text):
        return True

    def source(self, default):
        if self.data is None:
            return self.url
        import binascii
        import mimetypes
        mime = self.mimetype or mimetypes.guess_type(self.filename or "")[0] or default
        return "data:%s;base64,%s" % (mime, binascii.b2a_base64(bytes(self.data), newline=False).decode())


class Audio(Media):
    def __init__(self, data=None, filename=None, url=None, embed=None, rate=None, autoplay=False, normalize=True, *,
                 element_id=None):
        self.mimetype, self.autoplay = None, autoplay
        if data is not None and not isinstance(data, (str, bytes, bytearray)) and rate is not None:
            data, self.mimetype = wave_of(data, rate, normalize), "audio/wav"
        super().__init__(data, url, filename)

    def _repr_html_(self):
        return '<audio controls="controls" %s><source src="%s"/></audio>' % (
            'autoplay="autoplay"' if self.autoplay else "", escape(self.source("audio/wav")))


class Video(Media):
    def __init__(self, data=None, url=None, filename=None, embed=False, mimetype=None, width=None, height=None,
                 html_attributes="controls"):
        self.mimetype, self.width, self.height, self.html_attributes = mimetype, width, height, html_attributes
        super().__init__(data, url, filename)

    def _repr_html_(self):
        size = "".join(' %s="%s"' % (name, escape(value)) for name, value in
                       (("width", self.width), ("height", self.height)) if value is not None)
        return '<video %s%s src="%s"></video>' % (self.html_attributes, size, escape(self.source("video/mp4")))


def wave_of(data, rate, normalize):
    """16 bit samples from numbers: one channel, or a row for each."""
    import array
    import io
    import wave
    rows = [[float(x) for x in row] for row in (data if hasattr(data[0], "__len__") else [data])]
    top = max((abs(x) for row in rows for x in row), default=1) or 1
    if not normalize and top > 1:
        raise ValueError("Audio data must be between -1 and 1 when normalize=False.")
    samples = array.array("h", (int(x / (top if normalize else 1) * 32767) for line in zip(*rows) for x in line))
    if sys.byteorder == "big":
        samples.byteswap()
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(len(rows))
        out.setsampwidth(2)
        out.setframerate(int(rate))
        out.writeframes(samples.tobytes())
    return file.getvalue()


class FileLink:
    def __init__(self, path, url_prefix="", result_html_prefix="", result_html_suffix="<br>"):
        self.path, self.url_prefix = str(path), url_prefix
        self.result_html_prefix, self.result_html_suffix = result_html_prefix, result_html_suffix

    def _repr_html_(self):
        return '%s<a href="%s" target="_blank">%s</a>%s' % (
            self.result_html_prefix, escape(self.url_prefix + self.path), escape(self.path), self.result_html_suffix)

    def __repr__(self):
        return self.path


class ProgressBar:
    """Iterates, and shows how far it is."""

    def __init__(self, total):
        self.total, self.at, self.handle = total, 0, DisplayHandle()

    @property
    def progress(self):
        return self.at

    @progress.setter
    def progress(self, value):
        self.at = value
        self.update()

    def display(self):
        self.handle.display(self)

    def update(self):
        self.handle.update(self)

    def _repr_html_(self):
        return '<progress style="width:60ex" max="%s" value="%s"></progress>' % (self.total, self.at)

    def __repr__(self):
        return "[%d/%d]" % (self.at, self.total)

    def __iter__(self):
        self.display()
        for number in range(self.total):
            self.progress = number
            yield number
        self.progress = self.total


def shown_as(mime):
    """A function like display() that shows one form only; raw: the objects are its data."""

    def show(*objects, raw=False, metadata=None):
        for value in objects:
            if raw:
                display({mime: value}, raw=True, metadata={mime: metadata} if metadata else None)
            else:
                display(value, include={mime, "text/plain"}, metadata=metadata)

    return show


display_pretty, display_html, display_markdown, display_svg = map(
    shown_as, ("text/plain", "text/html", "text/markdown", "image/svg+xml"))
display_png, display_jpeg, display_latex, display_json = map(
    shown_as, ("image/png", "image/jpeg", "text/latex", "application/json"))
display_javascript, display_pdf = map(shown_as, ("application/javascript", "application/pdf"))
