"""What the command line can do: one module a group of commands, put together here."""

from __future__ import annotations

import typer

from drkm.commands import datasets, experiments, scores

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def about() -> None:
    """Disentangled, denoised, reproducible features from few samples."""


app.command()(experiments.demo)
app.command()(scores.evaluate)
app.command()(experiments.reproduce)
app.command()(experiments.report)
app.add_typer(datasets.app, name="datasets")
