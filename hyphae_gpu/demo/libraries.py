"""The public things of installed libraries and their docstrings, in an order that does not change from run to run."""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from types import ModuleType

#: Subpackages that are read, in this order: a thing belongs to the first that shows it, so the special stand before
#: the general. All come with this package's own dependencies; one that is missing or fails to import is passed over.
SUBPACKAGES = (
    "numpy.linalg",
    "numpy.fft",
    "numpy.random",
    "numpy.ma",
    "numpy.lib.stride_tricks",
    "numpy.polynomial.polynomial",
    "numpy.testing",
    "numpy",
    "scipy.linalg",
    "scipy.sparse.linalg",
    "scipy.sparse.csgraph",
    "scipy.sparse",
    "scipy.optimize",
    "scipy.stats",
    "scipy.signal",
    "scipy.ndimage",
    "scipy.interpolate",
    "scipy.integrate",
    "scipy.fft",
    "scipy.spatial.distance",
    "scipy.spatial",
    "scipy.special",
    "scipy.cluster.hierarchy",
    "scipy.io",
    "sklearn.cluster",
    "sklearn.compose",
    "sklearn.covariance",
    "sklearn.datasets",
    "sklearn.decomposition",
    "sklearn.ensemble",
    "sklearn.feature_extraction.text",
    "sklearn.feature_selection",
    "sklearn.gaussian_process",
    "sklearn.inspection",
    "sklearn.linear_model",
    "sklearn.manifold",
    "sklearn.metrics",
    "sklearn.model_selection",
    "sklearn.neighbors",
    "sklearn.neural_network",
    "sklearn.pipeline",
    "sklearn.preprocessing",
    "sklearn.svm",
    "sklearn.tree",
    "sklearn.utils",
    "torch.linalg",
    "torch.fft",
    "torch.special",
    "torch.sparse",
    "torch.autograd",
    "torch.utils.data",
    "torch.utils.checkpoint",
    "torch.distributions",
    "torch.nn.init",
    "torch.nn.utils",
    "torch.nn.functional",
    "torch.nn",
    "torch.optim.lr_scheduler",
    "torch.optim",
    "torch.cuda",
    "torch.jit",
    "torch.multiprocessing",
    "torch",
    "matplotlib.animation",
    "matplotlib.axes",
    "matplotlib.axis",
    "matplotlib.colors",
    "matplotlib.figure",
    "matplotlib.image",
    "matplotlib.patches",
    "matplotlib.ticker",
    "matplotlib.transforms",
    "networkx.algorithms.approximation",
    "networkx.algorithms.bipartite",
    "networkx.algorithms.centrality",
    "networkx.algorithms.community",
    "networkx.algorithms.flow",
    "networkx.algorithms.shortest_paths",
    "networkx.generators",
    "networkx.drawing",
    "networkx",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "pyarrow.fs",
    "pyarrow",
    "joblib",
    "psycopg",
    "pydantic",
    "jinja2",
)
#: Subpackages whose classes are mostly their methods.
WITH_METHODS = frozenset(
    {
        "joblib",
        "matplotlib.animation",
        "matplotlib.axes",
        "matplotlib.axis",
        "matplotlib.figure",
        "numpy.ma",
        "numpy.random",
        "psycopg",
        "pyarrow",
        "pyarrow.fs",
        "scipy.interpolate",
    }
)


@dataclass(frozen=True, kw_only=True)
class Documented:
    """A public function, class or method: its dotted name, the subpackage that shows it, its raw docstring."""

    name: str
    subpackage: str
    docstring: str


def documented(subpackages: Iterable[str] = SUBPACKAGES) -> tuple[list[Documented], dict[str, str]]:
    """Collect what the subpackages document; also return every other dotted name under which a thing is shown.

    Importing may warn or print; both are kept quiet. A module that cannot be imported is left out, as is a thing whose
    docstring word for word stood somewhere before (an inherited or re-exported one).
    """
    things: list[Documented] = []
    aliases: dict[str, str] = {}
    names_by_identity: dict[int, str] = {}
    texts: set[str] = set()
    kept_alive: list[object] = []
    for subpackage in subpackages:
        module = _imported(subpackage)
        if module is None:
            continue
        for name, thing in _public(module, subpackage):
            known = names_by_identity.get(id(thing))
            if known:
                aliases[name] = known
                continue
            docstring = _docstring(thing)
            if not docstring or docstring in texts:
                continue
            kept_alive.append(thing)
            names_by_identity[id(thing)] = name
            texts.add(docstring)
            things.append(Documented(name=name, subpackage=subpackage, docstring=docstring))
    return things, aliases


def version_of(subpackage: str) -> str:
    """Return the version of the library that a subpackage belongs to, empty where it does not say."""
    module = _imported(subpackage.partition(".")[0])
    return str(getattr(module, "__version__", ""))


def _imported(name: str) -> ModuleType | None:
    with warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(name)
        except Exception:
            # An optional part of somebody else's library: whatever it raises, the demo goes on without it.
            return None


def _public(module: ModuleType, subpackage: str) -> Iterator[tuple[str, object]]:
    """Yield (dotted name, thing) of what a module shows and its library made, sorted by name."""
    library = subpackage.partition(".")[0]
    shown = getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]
    for name in sorted(set(map(str, shown))):
        thing = _attribute(module, name)
        if not _is_described(thing) or not _made_by(thing, library):
            continue
        yield f"{subpackage}.{name}", thing
        if inspect.isclass(thing) and subpackage in WITH_METHODS:
            for method, member in sorted(vars(thing).items()):
                if not method.startswith("_") and inspect.isroutine(member):
                    yield f"{subpackage}.{name}.{method}", member


def _attribute(module: ModuleType, name: str) -> object:
    """Return a module's attribute; libraries load some lazily, warn about others, and refuse a few."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return getattr(module, name, None)
        except Exception:
            return None


def _is_described(thing: object) -> bool:
    """Whether a thing is a function, class or numpy-like ufunc, so that its docstring is its own."""
    return inspect.isroutine(thing) or inspect.isclass(thing) or (hasattr(thing, "nin") and hasattr(thing, "nout"))


def _made_by(thing: object, library: str) -> bool:
    """Whether the library made the thing; built-ins that name no module are taken as its own."""
    module = getattr(thing, "__module__", None)
    return not isinstance(module, str) or module.partition(".")[0] in (library, "mpl_toolkits")


def _docstring(thing: object) -> str:
    """Return a thing's own docstring; what is inherited from its class is none."""
    held = getattr(thing, "__doc__", None)
    if not isinstance(held, str) or (inspect.isclass(thing) and "__doc__" not in vars(thing)):
        return ""
    return held
