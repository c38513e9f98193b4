"""Software pipelining: start the loads of later iterations before the work of this one.

    for k in range(n):              load 0; load 1
        a = load(k)         ==>     for k in range(n):
        use(a)                          use(a of k); load k + 2 if it exists

Three passes, which communicate by attributes:

    latencies.py    tritongpu-assign-latencies    tt.latency = 2: this load should start two stages before its use
    schedule.py     tritongpu-schedule-loops      loop.stage, loop.cluster: when each op of the body runs;
    software_pipeline.py  tritongpu-pipeline      the transformation, in six steps:
        lower_loads.py    loads become copies to several buffers in shared memory: load_plans.py decides,
                          by cp.async or TMA
        expand.py         prologue and kernel loop for any schedule, with predicates for ops that may not run
        wgmma.py          warp-group dots run asynchronously
        software_pipeline.py itself: the copy groups that may be in flight at each wait, copies that start as soon
                          as a barrier has freed their buffers, and asynchronous stores by descriptor

A loop that cannot be pipelined is left as it is, with a remark (`../remarks.py`).
"""
