"""The report: one self-contained HTML page of every table, figure and claim that a store of runs has to show."""

from drkm.experiments.report.writing import write_report

__all__ = ["write_report"]
