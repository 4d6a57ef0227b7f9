"""Encoders: codes of new points by stationarity, or by the paper's formulas."""

from drkm.inference.encoder.encoding import Encoding
from drkm.inference.encoder.projection import ProjectionEncoder
from drkm.inference.encoder.stationary import StationaryEncoder

__all__ = ["Encoding", "ProjectionEncoder", "StationaryEncoder"]
