#!/usr/bin/env python3
"""make_mixture.py OUT: draws of weighted sources, as docs/data.md defines them, for test/unit/runtime/data/MixtureTest.cpp.

10,000 random cases of sources, files, weights, seeds and positions, in groups of 100: a line has the digest of all draws of a group.
This is written from the definition, with whole numbers of any size, and counts draws one by one where the positions are low.
"""

import sys
from fractions import Fraction

CASES, GROUP = 10_000, 100
M32, M64 = 2**32 - 1, 2**64 - 1


def philox(counter, key):  # Philox4x32-10
    for _ in range(10):
        p, q = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [(q >> 32) ^ counter[1] ^ key[0], q & M32, (p >> 32) ^ counter[3] ^ key[1], p & M32]
        key = [(key[0] + 0x9E3779B9) & M32, (key[1] + 0xBB67AE85) & M32]
    return counter


def mix(x):  # the finalizer of splitmix64
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & M64
    x = (x ^ x >> 27) * 0x94D049BB133111EB & M64
    return x ^ x >> 31


def words(seed, name, step, group):
    hashed = 0xCBF29CE484222325
    for c in name.encode():
        hashed = (hashed ^ c) * 0x100000001B3 & M64
    key = mix(seed + 0x9E3779B97F4A7C15 * (mix(hashed) | 1) & M64)
    return philox([group & M32, group >> 32, step & M32, step >> 32], [key & M32, key >> 32])


def shuffled(place, samples, seed, epoch):
    half = next(h for h in range(1, 64) if 4**h >= samples)
    while True:
        left, right = divmod(place, 2**half)
        for r in range(4):
            left, right = right, left ^ words(seed, "shuffle", epoch, r << 32 | right)[0] % 2**half
        place = left * 2**half + right
        if place < samples:
            return place


# The definition.


def counts(units, n):
    """How many of the first `n` draws, a multiple of 64, are of each source."""
    if not units:
        return []
    own = n * Fraction(units[0], sum(units)) // 1
    return [own, *counts(units[1:], n - own)]


def block(units, seed, number):
    """The sources of positions [64 number, 64 (number + 1)), in order."""
    before, after = counts(units, 64 * number), counts(units, 64 * (number + 1))
    drawn = [source for source, (a, b) in enumerate(zip(before, after)) for _ in range(b - a)]
    random = [word for group in range(16) for word in words(seed, "mixture", number, group)]
    for i in range(63, 0, -1):
        j = random[i] * (i + 1) >> 32
        drawn[i], drawn[j] = drawn[j], drawn[i]
    return drawn


def draws(sources, weights, seed, shuffle, first, count):
    """(source, file, sample of the file) at positions [first, first + count); `sources`: samples of each file of each source."""
    units = [max(1, int(weight / max(weights) * 2**40 + 0.5)) for weight in weights]
    begin = 0 if first < 1000 else first // 64
    drawn = counts(units, 64 * begin)
    for number in range(begin, (first + count + 63) // 64):
        for place, source in enumerate(block(units, seed, number)):
            index, samples = drawn[source], sum(sources[source])
            drawn[source] += 1
            if not first <= 64 * number + place < first + count:
                continue
            own = seed
            if len(sources) > 1:
                low, high, *_ = words(seed, "source", source, 0)
                own = high << 32 | low
            epoch, sample = divmod(index, samples)
            sample = shuffled(sample, samples, own, epoch) if shuffle and samples > 1 else sample
            file = 0
            while sample >= sources[source][file]:
                sample -= sources[source][file]
                file += 1
            yield source, file, sample


# The cases, as the test makes them.


def case(number):
    state = number

    def below(bound):
        nonlocal state
        state = state + 0x9E3779B97F4A7C15 & M64
        return mix(state) % bound

    sources = [[1 + below(50) for _ in range(1 + below(4))] for _ in range(1 + below(6))]
    weights = [(1 + below(1000)) / 10 ** below(7) for _ in sources]
    seed, shuffle = below(2**63), below(2) == 1
    first = below(300) if below(4) else below(2**50)
    return sources, weights, seed, shuffle, first, 1 + below(40)


def main(out):
    with open(out, "w") as file:
        for group in range(CASES // GROUP):
            digest = 0
            for number in range(group * GROUP, (group + 1) * GROUP):
                for draw in draws(*case(number)):
                    for value in draw:
                        digest = mix(digest * 3 + value & M64)
            print(f"{digest:016x}", file=file)


if __name__ == "__main__":
    main(*sys.argv[1:])
