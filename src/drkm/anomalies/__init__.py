"""Strange samples: how far cleaning moves them, by a model that is chosen for it."""

from drkm.anomalies.detector import AnomalyDetector

__all__ = ["AnomalyDetector"]
