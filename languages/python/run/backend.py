"""matplotlib's backend: Agg, whose figures can be shown."""
import sys

from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg


class FigureManager(FigureManagerBase):
    def show(self):  # fig.show()
        sys.modules["_kern_figures"].show(self.canvas.figure)


class FigureCanvas(FigureCanvasAgg):
    manager_class = FigureManager
