"""Warp specialisation on Hopper: some warps only copy, the others only compute.

    for k in tl.range(n, warp_specialize=True):         producer: for k: wait until stage k is empty; copy a, b to it
        acc = tl.dot(load a, load b, acc)          ==>  consumer: for k: wait until stage k is full; acc += a @ b
                                                                         release the stage of dot k - 1

The steps, each on whole functions; the result is a `ttg.warp_specialize`:

    channels.py         the loads of the producer, which of them share barriers, the number of stages; the cost model's
                        decision for loops that do not request partitions
    slicing.py          the split of the consumers' work in two, along M or N; layouts for fewer warps
    multi_buffering.py  ring buffers with barriers; how producer and consumers use and release their stages
    overlap.py          attention: overlap the work of one iteration with dots of the one before; ping-pong order
    specialize.py       the pass: builds the regions

A function that requests partitions and cannot be split is left alone, with a warning that says why.
"""
