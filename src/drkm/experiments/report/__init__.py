"""The report: one self-contained HTML page with every table, figure and claim that the runs of a store support."""

from drkm.experiments.report.writing import write_report

__all__ = ["write_report"]
