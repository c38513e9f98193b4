"""Software pipelining: start the loads of later iterations before the work of this one.

    for k in range(n):              load 0; load 1
        a = load(k)         ==>     for k in range(n):
        use(a)                          use(a of k); load k + 2 if it exists

Three passes; what they decide travels as attributes:

    latencies.py    tritongpu-assign-latencies    tt.latency = 2: this load should start two stages before its use
    schedule.py     tritongpu-schedule-loops      loop.stage, loop.cluster: when each op of the body runs;
    software_pipeline.py  tritongpu-pipeline      the loop that does it, in six steps:
        lower_loads.py    loads become copies to several buffers in shared memory: load_plans.py decides,
                          lower_copies.py (cp.async), lower_tma.py and descriptors.py (TMA) do it
        expand.py         prologue and kernel loop for any schedule; predicate.py: ops that may not run
        wgmma.py          matrix products run on while the loop goes on
        waits.py          how many groups of copies may be under way at each wait
        early_copies.py   copies start where the barrier of the turn has freed their buffers
        tma_stores.py     stores by descriptor no longer wait for themselves

A loop that cannot be pipelined is left as it is, with a remark (`../remarks.py`).
"""
