"""Figures of matplotlib: where plt.show() stands, and at the end of the code; each once, and closed then."""
import io
import os
import sys

runner = sys.modules["_kern_runner"]
rich = runner.part("rich")
last = None  # the figure that plt.show() has closed last, for a plt.savefig() behind it


def choose_backend(matplotlib):
    if "MPLBACKEND" not in os.environ:
        matplotlib.rcParams["backend"] = "module://_kern_backend"


def adopt(pyplot):
    import atexit
    import functools
    savefig = pyplot.savefig

    # Whatever the backend: with Agg, chosen by the code, show() would only warn.
    @functools.wraps(pyplot.show)
    def show(*arguments, **options):
        flush()

    # In a notebook a figure is blank when it is saved after it was shown.
    @functools.wraps(savefig)
    def save(*arguments, **options):
        if last is not None and not pyplot.get_fignums():
            return last.savefig(*arguments, **options)
        return savefig(*arguments, **options)

    pyplot.show, pyplot.savefig = show, save
    atexit.register(flush)  # behind threads that go on when the code has ended, before pyplot closes all


def picture(figure):
    """The bundle of a figure. What it looks like is kept with it: it is not shown twice if it has not changed."""
    file = io.BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight", facecolor=figure.get_facecolor(),
                   edgecolor=figure.get_edgecolor())
    png = file.getvalue()
    figure._kern_shown = hash(png)
    size = {"width": int.from_bytes(png[16:20], "big"), "height": int.from_bytes(png[20:24], "big")}
    return {"image/png": png}, {"image/png": size}


def show(figure):
    rich.display(figure)


def managers():
    return sorted(sys.modules["matplotlib.pyplot"]._pylab_helpers.Gcf.get_all_fig_managers(), key=lambda each: each.num)


def close(figure):
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot and any(each.canvas.figure is figure for each in managers()):
        pyplot.close(figure)


def flush():
    """Shows and closes all that pyplot holds. An empty one, and one that looks as when it was shown, is only closed."""
    global last
    if "matplotlib.pyplot" not in sys.modules or not runner.channel.usable():
        return
    found = managers()
    if found:
        last = sys.modules["matplotlib.pyplot"].gcf()
    for each in found:
        figure = each.canvas.figure
        try:
            before = getattr(figure, "_kern_shown", None)
            if len(figure.get_children()) > 1:
                bundle, metadata = {}, {}
                rich.add_all(bundle, metadata, picture(figure))
                bundle["text/plain"] = runner.text_of(figure)
                if figure._kern_shown != before:
                    rich.send(runner.DISPLAY, bundle, metadata, figure=True)
        except Exception as error:
            rich.complain(error)
        finally:
            close(figure)
