"""Codes of new points: by stationarity, or by the formulas of the paper."""

from drkm.encoder.encoding import Encoding
from drkm.encoder.projection import ProjectionEncoder
from drkm.encoder.stationary import StationaryEncoder

__all__ = ["Encoding", "ProjectionEncoder", "StationaryEncoder"]
