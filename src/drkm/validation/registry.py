"""Families whose members make themselves known by name: kernels, strategies, solvers, metrics and datasets."""

from __future__ import annotations

from typing import Any, TypeVar

Member = TypeVar("Member")
Kind = TypeVar("Kind", bound=type)


class Unknown(ValueError):
    """A name in a file that no member of a family has here."""


class Registry(dict[str, Member]):
    """Members of a family by name, in the order in which they were made known.

    Parameters
    ----------
    family, home : str
        What an error calls a member, and the package of the family.
    """

    def __init__(self, family: str, home: str):
        super().__init__()
        self.family, self.home = family, home
        self._places: dict[str, tuple[str, str]] = {}

    def add(self, name: Any, member: Member, home: Any) -> None:
        """Make a member known under its name.

        `home` is the class or function behind it. One that is defined anew, as when a cell of a notebook is run again,
        takes the place of the one before; any other must choose another name.
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
        """Make a class known by its attribute `name`, and return it: the rest of a decorator."""
        self.check_class(kind, base)
        self.add(kind.name, kind, kind)  # type: ignore[arg-type, attr-defined]
        return kind

    def check_class(self, kind: Any, base: type) -> None:
        """Refuse what is no class of the family."""
        if not (isinstance(kind, type) and issubclass(kind, base)):
            expected = f"drkm.{self.home}.{base.__name__}"
            raise TypeError(f"{self.family}: expected a subclass of {expected} to register, got {kind!r}")

    def forget(self, name: str) -> None:
        """Take a member out again."""
        del self[name], self._places[name]

    def written(self, name: Any) -> Member:
        """Return the member that a file names."""
        if name not in self:
            raise Unknown(
                f"a {self.family} {name!r} that is not known here: import the module that makes it known, with "
                f"@drkm.{self.home}.register above its class, before you read the file"
            )
        return self[name]
