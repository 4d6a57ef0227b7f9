"""Deep restricted kernel machines with orthogonality constraints."""

from drkm._version import __version__ as __version__
