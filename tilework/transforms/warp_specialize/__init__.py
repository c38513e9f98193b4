"""Warp specialisation on Hopper: some warps only copy, the others only compute.

    for k in tl.range(n, warp_specialize=True):             producer: for k: wait until stage k is empty; start copies of a, b
        acc = tl.dot(load a, load b, acc)          ==>      consumer: for k: wait until stage k is full; acc += a @ b
                                                                             what product k - 1 read is empty again

The steps, each on whole functions; what they decide is kept in Python, the result is a `ttg.warp_specialize`:

    channels.py      which loads the producer does, which of them share barriers, how many stages there are
    slicing.py       how the work of the consumers is cut in two, along M or N
    fewer_warps.py   the layouts of a program for eight warps that four will run
    rings.py         buffers and barriers; counters that go around them; what producer and consumers do at each load
    releases.py      where a consumer gives a stage back, once its products are in the background
    overlap.py       attention: work of one iteration under the products of the one before
    turns.py         attention: two groups of warps start their products in turn (ping-pong)
    specialize.py    the pass: asks all of them, and makes the regions

A function that asks and cannot be split stays whole, with a warning that says why.
"""
