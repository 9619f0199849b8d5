"""What happens when certain modules are imported: a hook runs when the module is there, or we stand in for it."""
import sys
from _frozen_importlib import ModuleSpec

runner = sys.modules["_kern_runner"]
HOOKS = {  # module: file of this directory and function, which is called with the module
    "matplotlib": ("figures", "choose_backend"),
    "matplotlib.pyplot": ("figures", "adopt"),
    "PIL.ImageShow": ("libraries", "adopt_viewers"),
    "plotly.io": ("libraries", "adopt_plotly"),
    "IPython.core.display": ("ipython", "adopt"),  # until 7.22 the functions are here
    "IPython.core.display_functions": ("ipython", "adopt"),
}


def find(name, path, target):
    if name == "_kern_backend":  # what matplotlib is told to import
        return ModuleSpec(name, StandIn)
    for finder in sys.meta_path:
        spec = finder.find_spec(name, path, target) if finder is not runner.Finder else None
        if spec is not None:
            break
    else:
        if name.startswith("IPython") and not path:  # no real one is there; the path of ours is empty
            return ModuleSpec(name, StandIn, is_package=name in ("IPython", "IPython.core"))
        return None
    if name in HOOKS and hasattr(spec.loader, "exec_module"):
        spec.loader = Hooked(spec.loader, *HOOKS[name])
    return spec


class Hooked:
    """The loader of a module, and then a hook. Everything else is asked of the loader itself."""

    def __init__(self, loader, file, function):
        self.loader, self.file, self.function = loader, file, function

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        try:
            getattr(runner.part(self.file), self.function)(module)
        except Exception as error:  # another version than we know
            runner.part("rich").complain(error)


class StandIn:
    @staticmethod
    def create_module(spec):
        return runner.part("backend") if spec.name == "_kern_backend" else None

    @staticmethod
    def exec_module(module):
        if module.__name__.startswith("IPython"):
            runner.part("ipython").fill(module)
