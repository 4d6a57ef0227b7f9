"""The parts of disentanglement experiments: groups of runs and tables as data, charts and claims as functions.

`scales` defines the size of each scale, `groups` the runs, `rows` how finished runs are chosen, `tables` and `charts`
what is shown of them, `claims` and `verdicts` how claims are judged; `study` puts it all together.
"""

from drkm.experiments.study.groups import Group, families, named_models
from drkm.experiments.study.scales import StudySizes
from drkm.experiments.study.study import Study, task
from drkm.experiments.study.tables import Table

__all__ = ["Group", "Study", "StudySizes", "Table", "families", "named_models", "task"]
