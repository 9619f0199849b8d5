"""What notebooks show of well-known libraries. Nothing is imported: an object is here, so its library is."""
import sys

runner = sys.modules["_kern_runner"]
rich = runner.part("rich")
ROWS, COLUMNS, TEXT, BYTES = 200, 50, 2000, 1 << 20  # of a table as data
TABLE = "application/vnd.dataresource+json"
TYPES = (("int", "integer"), ("uint", "integer"), ("float", "number"), ("decimal", "number"), ("bool", "boolean"),
         ("datetime", "datetime"), ("date", "date"), ("timedelta", "duration"), ("duration", "duration"),
         ("time", "time"), ("str", "string"), ("object", "string"))


def form_of(value):
    """A function that makes the bundle and says if it is all; None: the object knows best."""
    for kind in type(value).__mro__:
        found = FORMS.get((str(kind.__module__).partition(".")[0], kind.__qualname__))
        if found:
            return found
    return None


# ---- pictures


def figure(value):
    return runner.part("figures").picture(value), True


figure.figure = True


def image(value):
    import io
    if value.mode not in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"):
        value = value.convert({"F": "L", "I": "I;16"}.get(value.mode, "RGB"))
    file = io.BytesIO()
    value.save(file, "PNG")
    return ({"image/png": file.getvalue()}, {"image/png": {"width": value.width, "height": value.height}}), True


def adopt_viewers(module):
    class Viewer(module.Viewer):
        def show(self, image, **options):
            rich.display(image)
            return True

    module.register(Viewer, 0)


# ---- charts


def plotly(value):
    text = value.to_json()
    bundle = {"application/vnd.plotly.v1+json": text}
    if len(text) < BYTES * 4:
        bundle["text/html"] = value.to_html(include_plotlyjs="cdn", full_html=False)
    bundle["text/plain"] = "<%s of plotly with %d traces>" % (type(value).__name__, len(value.data))
    return bundle, True


def adopt_plotly(module):
    import os
    show = module.show

    def show_here(fig, renderer=None, *arguments, **options):
        """Shows the figure as a result, or with the renderer that is asked for."""
        if renderer is not None or "PLOTLY_RENDERER" in os.environ:
            return show(fig, renderer, *arguments, **options)
        if isinstance(fig, dict):
            import plotly.graph_objects
            fig = plotly.graph_objects.Figure(fig)
        return rich.display(fig)

    module.show = show_here


def altair(value):
    version = [kind.__module__.split(".")[2] for kind in type(value).__mro__ if kind.__module__.count(".") > 2]
    mime = "application/vnd.vegalite.%s+json" % (version[0] if version else "v5")
    return {mime: value.to_dict(), "text/plain": "<%s of altair>" % type(value).__name__}, False


# ---- tables


def type_of(dtype):
    name = str(dtype).lower()
    return next((word for start, word in TYPES if name.startswith(start)), "any")


def cell(value):
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, str):
        text = value
    elif str(value) in ("<NA>", "NaT"):  # other words of pandas for nothing
        return None
    else:
        method = rich.method_of(value, "isoformat")
        text = method() if method else str(value)
    return text if len(text) <= TEXT else text[:TEXT] + "..."


def resource(columns, keys, rows, width):
    """A table of Frictionless Data from (name, type, values): as many rows as there is room for."""
    fields, names = [], set()
    for name, kind, values in columns:
        while name in names:
            name += "'"
        names.add(name)
        fields.append({"name": name, "type": kind})
    lines = [{field["name"]: cell(value) for field, value in zip(fields, line)}
             for line in zip(*(values for _, _, values in columns))]
    schema = {"fields": fields}
    if keys:
        schema["primaryKey"] = [field["name"] for field in fields[:keys]]
    while True:
        text = rich.json_of({"profile": "tabular-data-resource", "schema": schema, "data": lines})[0]
        if len(text) < BYTES or not lines:
            break
        del lines[len(lines) // 2:]
    more = {"rows": rows, "columns": width, "shownRows": len(lines), "shownColumns": len(fields) - keys}
    return ({TABLE: text}, {TABLE: more}), False


def of_index(index, count):
    for number in range(index.nlevels):
        level = index.get_level_values(number)
        name = index.names[number]
        standard = "index" if index.nlevels == 1 else "level_%d" % number
        yield standard if name is None else str(name), type_of(level.dtype), level[:count].tolist()


def pandas_frame(value):
    top = value.iloc[:ROWS, :COLUMNS]
    columns = list(of_index(top.index, ROWS))
    keys = len(columns)
    for number, name in enumerate(top.columns):
        name = " ".join(map(str, name)) if isinstance(name, tuple) else str(name)
        column = top.iloc[:, number]
        columns.append((name, type_of(column.dtype), column.tolist()))
    return resource(columns, keys, *value.shape)


def pandas_series(value):
    top = value.iloc[:ROWS]
    columns = list(of_index(top.index, ROWS))
    keys = len(columns)
    columns.append(("values" if value.name is None else str(value.name), type_of(value.dtype), top.tolist()))
    return resource(columns, keys, len(value), 1)


def polars_frame(value):
    top = value.head(ROWS)
    columns = [(name, type_of(top[name].dtype), top[name].to_list()) for name in top.columns[:COLUMNS]]
    return resource(columns, 0, *value.shape)


def polars_series(value):
    return resource([(value.name or "values", type_of(value.dtype), value.head(ROWS).to_list())], 0, len(value), 1)


FORMS = {
    ("matplotlib", "Figure"): figure,
    ("PIL", "Image"): image,
    ("plotly", "BaseFigure"): plotly,
    ("altair", "TopLevelMixin"): altair,
    ("pandas", "DataFrame"): pandas_frame,
    ("pandas", "Series"): pandas_series,
    ("polars", "DataFrame"): polars_frame,
    ("polars", "Series"): polars_series,
}
