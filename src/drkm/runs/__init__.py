"""Many runs, each done once: what a run is, where its result is kept, and who computes it.

`configuration` says what a run is and `tasks` what a table of tasks is; `store` keeps results in one SQLite file;
`runner` computes those that are missing, in processes or on a Dask `cluster`. Which tasks there are is not said here:
whoever has runs to compute opens the store with a table of their tasks.
"""
