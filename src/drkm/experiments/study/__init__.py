"""What the disentanglement experiments are made of: groups of runs and tables as data, charts and claims as functions.

`scales` says how large each scale is, `groups` what is run, `rows` how finished runs are chosen, `tables` and `charts`
what is shown of them, `claims` and `verdicts` how it is judged what they are asked; `study` puts it all together.
"""

from drkm.experiments.study.groups import Group, kernel_pca
from drkm.experiments.study.scales import StudySizes
from drkm.experiments.study.study import Study, task
from drkm.experiments.study.tables import Table

__all__ = ["Group", "Study", "StudySizes", "Table", "kernel_pca", "task"]
