"""Sweeps of many runs, each computed once and stored.

`configuration` defines a run and `tasks` a table of tasks; `store` keeps results in one SQLite file; `runner` computes
missing ones, in processes or on a Dask `cluster`. The tasks themselves are defined elsewhere: open a store with a table
of your tasks.
"""
