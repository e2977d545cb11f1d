"""Sums the trace of a training program (`./train --trace FILE.json`) by kind of work."""

import collections
import json


class Row:
    """What some launches did; times in microseconds."""

    def __init__(self):
        self.calls, self.wall, self.processor, self.flops, self.bytes = 0, 0.0, 0.0, 0.0, 0.0

    def add(self, event):
        args = event.get("args", {})
        self.calls += 1
        self.wall += event["dur"]
        self.processor += event.get("tdur", 0)
        self.flops += args.get("flops", 0)
        self.bytes += args.get("bytes", 0)


class Summary:
    """`ranks`; `count`: steps, over all ranks; milliseconds of a step, and of enqueueing one; tables[stream][key]: rows."""

    def __init__(self, path, skip, key=lambda event: event["cat"]):
        """Leaves out the first `skip` steps of each rank. Raises ValueError where none is left."""
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events
                   if e["ph"] == "M" and e["name"] == "thread_name"}
        steps = collections.defaultdict(list)
        for event in events:
            if event["ph"] == "X" and event["cat"] == "step":
                steps[event["pid"]].append(event)
        for rank in steps:
            steps[rank] = sorted(steps[rank], key=lambda step: step["ts"])[skip:]
        self.ranks = len(steps)
        self.count = sum(len(of_rank) for of_rank in steps.values())
        if not self.count:
            raise ValueError(f"'{path}' has no step left after skipping {skip}")
        self.milliseconds = sum(step["dur"] for of_rank in steps.values() for step in of_rank) / self.count / 1e3
        self.tables = collections.defaultdict(lambda: collections.defaultdict(Row))
        for event in events:
            if event["ph"] != "X" or event["cat"] == "step":
                continue
            begin = event["ts"]
            if any(step["ts"] <= begin < step["ts"] + step["dur"] for step in steps[event["pid"]]):
                self.tables[threads[event["pid"], event["tid"]]][key(event)].add(event)
        enqueued = [row for rows in self.tables.values() for name, row in rows.items() if name == "enqueue"]
        self.enqueue = sum(row.wall for row in enqueued) / self.count / 1e3
