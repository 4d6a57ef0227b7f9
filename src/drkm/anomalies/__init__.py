"""Anomaly detection: samples are strange if denoising moves them far."""

from drkm.anomalies.choice import false_alarm_distance, parameters
from drkm.anomalies.detector import AnomalyDetector

__all__ = ["AnomalyDetector", "false_alarm_distance", "parameters"]
