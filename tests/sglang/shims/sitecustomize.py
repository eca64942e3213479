"""Lets SGLang's wheel start on a machine without a GPU. Goes on PYTHONPATH; changes no package.

Stood in for, where they are not installed: `sgl_kernel` (its wheel holds CUDA code only; SGLang
falls back on torch, and a stand-in that is called all the same raises) and `triton` (a gigabyte;
its decorators return the function, which nobody launches). `torchvision` is installed, but its
registration of shapes fails beside a CPU build of torch, so it is skipped.
"""

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any

STOOD_IN_FOR = ("sgl_kernel", "triton")


class AnyClass:
    """Any class that a stand-in is asked for: may be subclassed, does nothing."""

    def __init__(self, *arguments: object, **options: object) -> None:
        pass


class StandIn(types.ModuleType):
    """A module, a decorator and a namespace in one."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        full = f"{self.__name__}.{name}"
        value: Any
        if full in sys.modules:
            value = sys.modules[full]
        elif name[0].isupper():
            value = type(name, (AnyClass,), {"__module__": self.__name__})
        else:
            value = StandIn(full)
        setattr(self, name, value)
        return value

    def __call__(self, *arguments: Any, **options: object) -> Any:
        if not self.__name__.startswith("triton"):
            raise NotImplementedError(f"{self.__name__} does not run on a CPU")
        if len(arguments) == 1 and callable(arguments[0]) and not options:
            return arguments[0]
        return lambda decorated: decorated

    def __bool__(self) -> bool:
        return False

    def __iter__(self) -> Iterator[Any]:
        return iter(())


class StandInFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Asked last, so that an installed package wins."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """A stand-in for what is one of `STOOD_IN_FOR`."""
        top, _, rest = name.partition(".")
        # SGLang has fallbacks of its own where a part of sgl_kernel is missing.
        if top not in STOOD_IN_FOR or (top == "sgl_kernel" and rest):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Nothing is read from anywhere."""
        return StandIn(spec.name)

    def exec_module(self, module: Any) -> None:
        """What is called while SGLang is imported has to answer."""
        if module.__name__ == "triton":
            module.__version__ = "3.9.0"
            module.cdiv = lambda amount, part: -(amount // -part)
            module.next_power_of_2 = lambda number: 1 << max(number - 1, 0).bit_length()


sys.meta_path.append(StandInFinder())
sys.modules["torchvision._meta_registrations"] = types.ModuleType("_meta_registrations")
