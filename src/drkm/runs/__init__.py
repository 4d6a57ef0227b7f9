"""Many runs, each done once: what a run is, where its result is kept, and who computes it.

`configuration` says what a run is and `tasks` what it can compute; `store` keeps results in one SQLite file; `runner`
computes those that are missing, in processes or on a Dask cluster. What the runs are for is in `drkm.experiments`.
"""
