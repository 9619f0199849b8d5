"""Rows that are measured in turn, and the table of what was found."""

import math
import statistics

from flight import reason


class Row:
    """`make()` gives the way it calls (flight.py), at its first slice. `at_once`: its slices are bursts of so many calls;
    `seconds`: it has one slice that long. `meter`: where its processor time is read; None: that cannot be known from here."""

    def __init__(self, block, name, make, meter, ours=False, at_once=1, seconds=None):
        self.block, self.name, self.make, self.meter, self.ours = block, name, make, meter, ours
        self.at_once, self.seconds = at_once, seconds
        self.way, self.took, self.whole = None, [], []
        self.failures, self.why, self.calls, self.slices, self.cpu_ms, self.ended = 0, None, 0, 0, 0.0, []

    def warm_up(self, pause=0):
        """Not counted but for what fails; a row where nothing worked is left at that."""
        try:
            self.way = self.make()
        except Exception as problem:  # whatever a rival cannot start by
            self._failed(reason(problem))
            return
        calls = self.way.fly(calls=max(3, self.at_once), at_once=self.at_once, pause=pause)
        self._count_failures(calls)
        if all(call.why for call in calls):
            self.way = None
        if self.meter:
            self.meter.settle()

    def slice(self, calls, pause=0):
        if not self.way:
            return
        before = self.meter.ms() if self.meter else 0
        if self.seconds:
            found = self.way.fly(seconds=self.seconds, at_once=self.at_once)
        else:
            found = self.way.fly(calls=calls if self.at_once == 1 else self.at_once, at_once=self.at_once, pause=pause)
        self.cpu_ms += self.meter.settle() - before if self.meter else 0
        self.calls += len(found)
        self.slices += 1
        self._count_failures(found)
        self._keep([call for call in found if not call.why], min(call.begin for call in found))

    def _keep(self, good, first):
        burst = self.at_once > 1 and not self.seconds  # whoever has many things to do waits from the first one on
        self.took += [(call.end - (first if burst else call.begin)) * 1000 for call in good]
        if burst and good:
            self.whole.append((max(call.end for call in good) - first) * 1000)
        if self.seconds:
            self.ended = [call.end - first for call in good]

    def _count_failures(self, calls):
        for call in calls:
            if call.why:
                self._failed(call.why)

    def _failed(self, why):
        self.failures += 1
        self.why = self.why or why

    def line(self):
        """What is known of it, as in the JSON."""
        line = {"block": self.block, "row": self.name, "ours": self.ours, "n": len(self.took), "failures": self.failures}
        if self.why:
            line["reason"] = self.why
        if self.calls and self.meter:
            line["cpuMs"] = max(0.0, self.cpu_ms) / self.calls
            line["cpuWhole"] = self.meter.whole
            line["cpuErrorMs"] = self.meter.error_ms * math.sqrt(self.slices) / self.calls
        found = sorted(self.took)
        if found:
            line.update({f"p{q}": found[math.ceil(q / 100 * len(found)) - 1] for q in (90, 99)}, min=found[0], p50=statistics.median(found))
        if self.whole:
            line["all"] = statistics.median(self.whole)
        if self.ended:
            quarters = [sum(1 for end in self.ended if low <= end / self.seconds * 4 < low + 1) for low in (0, 3)]
            line["perSecond"] = len(self.ended) / max(self.ended)
            line["firstQuarter"], line["lastQuarter"] = (4 * count / self.seconds for count in quarters)
        return line


def measure(rows, options):
    """Fills the rows that are wanted, in interleaved rounds, those that take their time after them; and gives them."""
    rows = [row for row in rows if options.only in f"{row.block} {row.name}"]
    for row in rows:
        row.warm_up()
    for _ in range(options.rounds):
        for row in rows:
            if not row.seconds:
                row.slice(options.calls, options.pause)
    for row in rows:
        if row.seconds:
            row.slice(None)
    return rows


def lines_of(rows):
    """The rows' lines; `oursIs`: what the last of ours in the block takes, as a part of what this takes."""
    lines = [row.line() for row in rows]
    for line in lines:
        ours = [other for other in lines if other["block"] == line["block"] and other["ours"] and other["n"]]
        if ours and line["n"]:
            what = "all" if "all" in line else "p50"
            line["oursIs"] = ours[-1][what] / line[what]
    return lines


def failed(lines):
    """One of ours did."""
    return any(line["ours"] and line["failures"] for line in lines)


def print_table(lines, missing):
    print(f"{'what':24} {'how':29} {'calls':>6} {'failed':>6} {'min ms':>8} {'p50 ms':>8} {'p90 ms':>8} {'p99 ms':>8} {'cpu ms':>8} {'ours / this':>12}")
    last = None
    for line in lines:
        print() if last not in (None, line["block"]) else None
        last = line["block"]
        print(f"{line['block']:24} {line['row']:29} {line['n']:6} {line['failures']:6}" + figures(line))
    print(f"\nnot here, so not measured: {', '.join(missing)}" if missing else "\nall rivals were here")


def figures(line):
    if not line["n"]:
        return f" {line.get('reason', 'no calls')[:100]}"
    text = "".join(f" {line[name]:8.2f}" for name in ("min", "p50", "p90", "p99"))
    cost = f"{'' if line['cpuWhole'] else '>'}{line['cpuMs']:.2f}" if "cpuMs" in line else "-"
    text += f" {cost:>8}"
    text += f" {line['oursIs']:11.2f}x" if "oursIs" in line else ""
    if "all" in line:
        text += f"  all in {line['all']:.0f} ms"
    if "perSecond" in line:
        text += f"  {line['perSecond']:.0f} a second; first quarter {line['firstQuarter']:.0f}, last {line['lastQuarter']:.0f}"
    return text + (f"  first failure: {line['reason'][:100]}" if "reason" in line else "")
