"""Strange samples: how far cleaning moves them, by a model that is chosen for it."""

from drkm.anomalies.choice import false_alarm_distance, parameters
from drkm.anomalies.detector import AnomalyDetector

__all__ = ["AnomalyDetector", "false_alarm_distance", "parameters"]
