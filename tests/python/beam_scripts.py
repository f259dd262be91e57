"""Scripts for a comparison with Apache Beam: events, watermark and clock, made up from a seed.

Each script is for one aggregate, and there is one of each kind: fixed, sliding and session windows, with and without early
and late firings, accumulating and discarding, with and without allowed lateness. The revenue of an event is a power of two,
so that a sum tells which events are in it.

A `Story` also knows what Beam's Python runner gets wrong, by its own sources and by what it was seen to do; docs/windows.md
says what and why. It leaves out the one step that would run into it, never a script.
"""

import math
import random
from dataclasses import dataclass, field
from itertools import product

# Seconds. The clock and the watermark of every script begin behind this one.
START = 1796047200  # 2026-11-30T14:00:00Z, a whole number of all windows
WINDOWS = [("fixed", 60), ("sliding", 60), ("session", 30)]
EVERY = 20
# Early firings, late firings: seconds. Without late ones the aggregate says nothing of them.
TRIGGERS = [(None, None), (10, None), (None, "each"), (None, 15), (10, 15)]
LATENESS = 90
EVENTS = 18


@dataclass(frozen=True)
class Aggregate:
    """What is aggregated and how. Times are in seconds."""

    windows: str
    size: int
    early: int | None
    late: str | int | None
    accumulating: bool
    lateness: int
    group_by: str

    def assign(self, at):
        """The windows of an event; for a session the span that it would have by itself."""
        if self.windows == "session":
            return [(at, at + self.size)]
        every = EVERY if self.windows == "sliding" else self.size
        last = at // every * every
        return [(start, start + self.size) for start in range(int(last), int(at - self.size), -every)]

    def toml(self):
        """It, as a pipeline file has it."""
        window = {"fixed": "fixed", "sliding": "sliding", "session": "session"}[self.windows]
        every = f', every = "{EVERY} s"' if self.windows == "sliding" else ""
        lines = [
            "[aggregates.parity]",
            'table = "gold.parity"',
            'create = "if_needed"',
            f'window = {{ {window} = "{self.size} s"{every} }}',
            f'allowed_lateness = "{self.lateness} s"',
            f'accumulation = "{"accumulating" if self.accumulating else "discarding"}"',
            f'group_by = ["{self.group_by}"]',
        ]
        lines += [f'early = "{self.early} s"'] if self.early else []
        lines += [f'late = "{self.late if self.late == "each" else f"{self.late} s"}"'] if self.late else []
        lines += ["[aggregates.parity.measures]", 'orders = "count"', 'revenue = { sum = "revenue" }']
        return "\n".join(lines) + "\n"

    def name(self):
        """Its kind, in words."""
        early = f"early-{self.early}s" if self.early else None
        late = {None: None, "each": "late-each"}.get(self.late, f"late-{self.late}s")
        mode = "accumulating" if self.accumulating else "discarding"
        return "-".join(filter(None, [self.windows, early, late, mode, f"lateness-{self.lateness}s"]))


@dataclass(frozen=True)
class Event:
    """An event: its name, event time in seconds, key, and revenue."""

    name: str
    at: float
    key: str | None
    revenue: int


@dataclass(frozen=True)
class Watermark:
    """The watermark goes there."""

    to: float


@dataclass(frozen=True)
class Clock:
    """Processing time goes there."""

    to: float


@dataclass
class Window:
    """What Beam's runner remembers of a window."""

    start: float
    end: float
    passed: bool = False
    # When it fires by the clock, if it waits for that.
    timer: float | None = None
    # Where it keeps the watermark of what comes out, while there is something to come out. It does not move when it merges.
    hold: float = math.inf

    def overlaps(self, other):
        return self.start < other.end and other.start < self.end


@dataclass
class Story:
    """A script in the making."""

    aggregate: Aggregate
    random: random.Random
    steps: list = field(default_factory=list)
    watermark: float = float("-inf")
    clock: float = START
    windows: dict = field(default_factory=dict)
    events: int = 0

    def event(self, at, key):
        """Adds an event, unless Beam's Python runner would do with it what Beam does not say."""
        own = [Window(*span) for span in self.aggregate.assign(at)]
        joined = [self.joined(key, window) for window in own]
        if any(self.is_beyond_beam(key, *pair) for pair in zip(own, joined)):
            return
        for window, (known, absorbed) in zip(own, joined):
            if window.end + self.aggregate.lateness > self.watermark:
                self.put(key, known, absorbed)
        self.events += 1
        self.steps.append(Event(f"e{self.events}", at, key, 1 << (self.events - 1)))

    def joined(self, key, window):
        """The window as it will be, and those that go into it."""
        known = self.windows.get(key, [])
        if self.aggregate.windows != "session":
            return next((old for old in known if old.start == window.start), window), []
        absorbed = [old for old in known if old.overlaps(window)]
        start = min([window.start] + [old.start for old in absorbed])
        end = max([window.end] + [old.end for old in absorbed])
        same = next((old for old in absorbed if (old.start, old.end) == (start, end)), None)
        return (same, []) if same else (Window(start, end), absorbed)

    def is_beyond_beam(self, key, own, joined):
        """Whether Beam's Python runner is known to go wrong with an event in this window."""
        window, absorbed = joined
        lateness, late_clock = self.aggregate.lateness, isinstance(self.aggregate.late, int)
        known = [window] if window in self.windows.get(key, []) else absorbed
        # Python takes an event when the watermark is at end + lateness. Java, and the programming guide, do not.
        if own.end + lateness == self.watermark:
            return True
        # Sessions that are expired are not forgotten in Python; an event is dropped for what it would be by itself.
        if any(old.end + lateness <= self.watermark for old in known if self.aggregate.windows == "session"):
            return True
        if own.end + lateness <= self.watermark:
            return bool(known) and self.aggregate.windows == "session"
        # A session that has fired and is extended beyond the watermark stalls it, but for the default trigger.
        if self.by_trigger() and any(old.passed for old in absorbed) and window.end > self.watermark:
            return True
        # Timers of sessions that merge are both kept, and both fire.
        if sum(old.timer is not None for old in absorbed) > 1:
            return True
        # What waits in a window keeps the watermark of what comes out at the end that the window has, or had before it was
        # merged: behind the watermark. What then fires at once in another is called EARLY, and the runner stalls.
        fresh_and_late = window.end <= self.watermark and not known
        at_once = window.end <= self.watermark and (fresh_and_late or not late_clock)
        if at_once and any(other.hold <= window.end for other in self.all_windows()):
            return True
        # An early timer outlives the pane at the watermark, and then fires the late trigger.
        if self.aggregate.early and late_clock:
            by_clock = self.clock + self.aggregate.early
            return fresh_and_late or (window.end > self.watermark and by_clock >= window.end)
        return False

    def all_windows(self):
        return [window for windows in self.windows.values() for window in windows]

    def by_trigger(self):
        """Whether Beam gets another trigger than its default one."""
        return self.aggregate.early is not None or isinstance(self.aggregate.late, int)

    def put(self, key, window, absorbed):
        windows = self.windows.setdefault(key, [])
        for old in absorbed:
            windows.remove(old)
            window.timer = old.timer if window.timer is None else window.timer
        fired_before = any(old.passed for old in absorbed) or window.passed
        if window not in windows:
            windows.append(window)
        window.passed = window.end <= self.watermark
        wait = self.aggregate.early if not window.passed else None
        if window.passed and fired_before and isinstance(self.aggregate.late, int):
            wait = self.aggregate.late
        if wait is not None and window.timer is None:
            window.timer = self.clock + wait
        waits = not window.passed or window.timer is not None
        window.hold = min([window.hold, window.end] + [old.hold for old in absorbed]) if waits else math.inf

    def move_watermark(self, to):
        """Moves the watermark, and the clock where a pending timer or the late trigger wants it near."""
        if to <= self.watermark:
            return
        if self.aggregate.early and isinstance(self.aggregate.late, int):
            for timer in sorted(self.timers_before(to)):
                self.set_watermark(timer)
                self.set_clock(timer)
        self.set_watermark(to)
        if isinstance(self.aggregate.late, int):
            self.set_clock(max(self.clock, to - self.random.randrange(self.aggregate.late)))

    def timers_before(self, to):
        return {window.timer for window in self.all_windows() if window.timer is not None and not window.passed and window.end <= to}

    def set_watermark(self, to):
        if to <= self.watermark:
            return
        self.watermark = to
        self.steps.append(Watermark(to))
        for window in self.all_windows():
            if not window.passed and window.end <= to:
                window.passed, window.hold = True, math.inf

    def set_clock(self, to):
        """Python labels a pane by the clock where the clock has fired it: it stays behind the watermark, and near it."""
        to = math.floor(min(to, max(self.watermark, START)))
        if to <= self.clock:
            return
        self.clock = to
        self.steps.append(Clock(to))
        for window in self.all_windows():
            if window.timer is not None and window.timer <= to:
                window.timer = None
                window.hold = math.inf if window.passed else window.hold

    def keys(self):
        return ["A", "B"] if self.aggregate.group_by == "sku" else ["north", None]

    def edge(self):
        """The end of a window, or the moment before it."""
        ends = [window.end for window in self.all_windows()] or [START + 60]
        return self.random.choice(ends) - self.random.choice([0, 0, 0.001])

    def at(self, now):
        """An event time: mostly a little behind, sometimes far, sometimes on an edge."""
        kind = self.random.random()
        if kind < 0.5:
            return now - self.random.randrange(20)
        if kind < 0.7:
            return now - self.random.randrange(20, 80)
        if kind < 0.85:
            return now - self.random.randrange(80, 120 + LATENESS)
        return self.edge()

    def tell(self):
        now = START + 20
        while self.events < EVENTS:
            now += self.random.randrange(1, 16)
            self.event(self.at(now), self.random.choice(self.keys()))
            if self.random.random() < 0.4:
                self.move_watermark(self.edge() if self.random.random() < 0.3 else now - self.random.randrange(30))
            if self.by_trigger() and self.random.random() < 0.4:
                self.set_clock(self.clock + self.random.randrange(1, 15))
        if self.aggregate.early and isinstance(self.aggregate.late, int):
            self.move_watermark(now + 200)
        return self.steps


def scripts(seed=0):
    """(name, aggregate, steps) of every script, always the same for a seed."""
    kinds = list(product(WINDOWS, TRIGGERS, [True, False], [LATENESS, 0]))
    # What lateness makes of it is most of what can differ: twice.
    kinds += [kind for kind in kinds if kind[3] > 0]
    for number, ((windows, size), (early, late), accumulating, lateness) in enumerate(kinds, start=1):
        group_by = "region" if number % 5 == 0 else "sku"
        aggregate = Aggregate(windows, size, early, late, accumulating, lateness, group_by)
        story = Story(aggregate, random.Random(1000 * seed + number))
        yield f"{number:02}-{aggregate.name()}", aggregate, story.tell()
