"""attention_balance.py LOCAL.mlir RANKS: scores that each rank computes of attention in training, forward and backward, the largest next to the mean."""

import re
import sys

CALL = re.compile(r'nn\.(attention|attention_grad)( "[a-z ]+")? %.* causal(?: at \[([-0-9, ]+)\] over \[[^]]*\])?.*? : \((.*?)\) ->')


def seen(queries, keys, first):
    """Pairs of a query at `first` or behind it and a key at its position or before it."""
    return sum(min(max(first + query + 1, 0), keys) for query in range(queries))


def main():
    path, ranks = sys.argv[1], int(sys.argv[2])
    with open(path) as file:
        train = file.read().split("fsdp.segment @evaluate")[0]
    scores, calls = [0] * ranks, 0
    for _, order, places, types in CALL.findall(train):
        dim = (order.strip(' "') or "b h t d").split().index("t")
        queries, keys = (int(shape.split("x")[dim]) for shape in re.findall(r"tensor<([0-9x]+)x[a-z]", types)[:2])
        firsts = [int(place) for place in places.split(",")] if places else [keys - queries] * ranks
        for rank in range(ranks):
            scores[rank] += seen(queries, keys, firsts[rank])
        calls += 1
    print(f"{sum(scores)} scores in {calls} calls, the busiest of {ranks} ranks has {max(scores) * ranks / sum(scores):.2f} times the mean")


main()
