"""Registries of kernels, strategies, solvers, metrics and datasets by name."""

from __future__ import annotations

from typing import Any, TypeVar

Member = TypeVar("Member")
Kind = TypeVar("Kind", bound=type)


class Unknown(ValueError):
    """A file names a member that is not registered here."""


class Registry(dict[str, Member]):
    """Members of a family by name, in the order of registration.

    Parameters
    ----------
    family, home : str
        Name of the family in error messages, and its package.
    """

    def __init__(self, family: str, home: str):
        super().__init__()
        self.family, self.home = family, home
        self._places: dict[str, tuple[str, str]] = {}

    def add(self, name: Any, member: Member, home: Any) -> None:
        """Register a member under its name.

        `home` is its class or function. If it is defined again, as when a notebook cell is run again, it replaces the
        earlier one; any other member must choose another name.
        """
        place = home.__module__, home.__qualname__
        if not isinstance(name, str) or not name:
            raise TypeError(f"name: {place[1]} needs a text by which it is known, got {name!r}")
        if self._places.get(name, place) != place:
            raise ValueError(
                f"name: {name!r} is the {self.family} {'.'.join(self._places[name])}, choose another for {place[1]}"
            )
        self[name] = member
        self._places[name] = place

    def add_class(self, kind: Kind, base: type) -> Kind:
        """Register a class under its attribute `name` and return it, for use in a decorator."""
        self.check_class(kind, base)
        self.add(kind.name, kind, kind)  # type: ignore[arg-type, attr-defined]
        return kind

    def check_class(self, kind: Any, base: type) -> None:
        """Refuse an object that is not a class of the family."""
        if not (isinstance(kind, type) and issubclass(kind, base)):
            expected = f"drkm.{self.home}.{base.__name__}"
            raise TypeError(f"{self.family}: expected a subclass of {expected} to register, got {kind!r}")

    def forget(self, name: str) -> None:
        """Unregister a member."""
        del self[name], self._places[name]

    def written(self, name: Any) -> Member:
        """Return the member that a file names."""
        if name not in self:
            raise Unknown(
                f"a {self.family} {name!r} that is not registered here: import the module that registers it, with "
                f"@drkm.{self.home}.register above its class, before you read the file"
            )
        return self[name]
