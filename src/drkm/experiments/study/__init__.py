"""Disentanglement experiments as data: what their runs, tables, charts and claims are made of.

`scales` says how large each scale is, `groups` what is run, `rows` how finished runs are chosen, `tables` and `charts`
what is shown of them, `claims` what they are asked and `verdicts` how that is decided; `study` puts it all together.
"""

from drkm.experiments.study.groups import Group, kernel_pca
from drkm.experiments.study.scales import StudySizes
from drkm.experiments.study.study import Study, task
from drkm.experiments.study.tables import Table

__all__ = ["Group", "Study", "StudySizes", "Table", "kernel_pca", "task"]
