"""What Apache Beam makes of the scripts in beam_scripts.py: `TestStream` on the Python runner that knows it.

    python3 beam_panes.py [--seed N]

Prints one line of JSON a script: its name, the aggregate as TOML, the script as `preflight simulate` takes it, Beam's panes,
and for each event that Beam has dropped the windows that it is missing from.
"""

import argparse
import json
import logging
import signal
import sys
from datetime import datetime, timedelta, timezone

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.test_stream import TestStream
from apache_beam.transforms import trigger, window
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import PaneInfoTiming

import beam_panes
import beam_scripts
from beam_scripts import START, Clock, Event, Watermark

# Where panes are put. Beam pickles its functions: those find it by the name of this module, which is not `__main__`.
PANES = []

# Seconds. A script takes a fraction of one; a runner that waits for a timer which nobody sets off waits for ever.
STUCK = 60


class Record(beam.DoFn):
    """Puts each pane aside."""

    def process(self, element, of=beam.DoFn.WindowParam, pane=beam.DoFn.PaneInfoParam):
        key, revenues = element
        revenues = list(revenues)
        timing = PaneInfoTiming.to_string(pane.timing)
        span = (of.start.micros / 1e6, of.end.micros / 1e6)
        PANES.append((key, span, pane.index, timing, revenues))
        return []


def windows_of(aggregate):
    if aggregate.windows == "fixed":
        return window.FixedWindows(aggregate.size)
    if aggregate.windows == "sliding":
        return window.SlidingWindows(aggregate.size, beam_scripts.EVERY)
    return window.Sessions(aggregate.size)


def trigger_of(aggregate):
    """The trigger that means the same. Each late element is what the default trigger does, which also keeps on when a
    session that has fired goes on: `AfterWatermark` does not, in Python."""
    by_clock = isinstance(aggregate.late, int)
    default = aggregate.late is None or aggregate.windows == "session"
    if aggregate.early is None and not by_clock and default:
        return trigger.DefaultTrigger()
    early = trigger.AfterProcessingTime(aggregate.early) if aggregate.early else None
    late = trigger.AfterProcessingTime(aggregate.late) if by_clock else trigger.AfterCount(1)
    return trigger.AfterWatermark(early=early, late=late)


def exact(seconds):
    return Timestamp(micros=round(seconds * 1000) * 1000)


def stream_of(steps):
    # Beam's clock begins at 0.
    stream, clock = TestStream().advance_processing_time(START), START
    for step in steps:
        match step:
            case Event():
                stream = stream.add_elements([window.TimestampedValue((step.key, step.revenue), exact(step.at))])
            case Watermark():
                stream = stream.advance_watermark_to(exact(step.to))
            case Clock():
                stream, clock = stream.advance_processing_time(step.to - clock), step.to
    # It never drops a window, and does not end while one waits for the clock.
    return stream.advance_watermark_to_infinity().advance_processing_time(3600)


def panes_of(aggregate, steps):
    """What comes out, in order."""
    modes = trigger.AccumulationMode
    windowed = beam.WindowInto(
        windows_of(aggregate),
        trigger=trigger_of(aggregate),
        accumulation_mode=modes.ACCUMULATING if aggregate.accumulating else modes.DISCARDING,
        allowed_lateness=aggregate.lateness,
    )
    beam_panes.PANES.clear()
    options = PipelineOptions(runner="BundleBasedDirectRunner", streaming=True, allow_unsafe_triggers=True)
    with beam.Pipeline(options=options) as pipeline:
        _ = pipeline | stream_of(steps) | windowed | beam.GroupByKey() | beam.ParDo(beam_panes.Record())
    return list(beam_panes.PANES)


def time(seconds):
    at = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=round(seconds * 1000))
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def span(start, end):
    return {"start": time(start), "end": time(end)}


def line_of(aggregate, step):
    """A step as `preflight simulate` takes it."""
    match step:
        case Event():
            sku, region = (step.key, "north") if aggregate.group_by == "sku" else ("A", step.key)
            order = {"event_id": step.name, "sku": sku, "region": region, "channel": "web", "quantity": 1}
            order |= {"revenue": step.revenue, "occurred_at": time(step.at)}
            return {"event": order, "message_id": step.name}
        case Watermark():
            return {"watermark": time(step.to)}
        case Clock():
            return {"processing_time": time(step.to)}


def dropped(aggregate, steps, panes):
    """Events and their windows that they are in no pane of. A session is not known by what an event would be by itself."""
    for event in (step for step in steps if isinstance(step, Event)):
        of_key = [pane for pane in panes if pane[0] == event.key]
        held = {pane[1] for pane in of_key if event.revenue in pane[4]}
        spans = sorted(aggregate.assign(event.at))
        missed = [of for of in spans if of not in held] if aggregate.windows != "session" else ([] if held else spans)
        if missed:
            yield {"message_id": event.name, "missed_windows": [span(*of) for of in missed]}


def run(name, aggregate, steps):
    panes = panes_of(aggregate, steps)
    script = [{"processing_time": time(START)}, *(line_of(aggregate, step) for step in steps), {"end": True}]
    return {
        "name": name,
        "aggregate": aggregate.toml(),
        "accumulating": aggregate.accumulating,
        "script": [json.dumps(line) for line in script],
        "panes": [
            {
                "window": span(*of),
                "key": {aggregate.group_by: key},
                "index": index,
                "timing": timing,
                "orders": len(revenues),
                "revenue": sum(revenues),
            }
            for key, of, index, timing, revenues in panes
        ],
        "dropped": list(dropped(aggregate, steps, panes)),
    }


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--seed", type=int, default=0)
    logging.disable(logging.WARNING)
    for name, aggregate, steps in beam_scripts.scripts(arguments.parse_args().seed):
        signal.alarm(STUCK)
        try:
            print(json.dumps(run(name, aggregate, steps)), flush=True)
        except BaseException:
            print(f"Beam does not come to an end with {name}", file=sys.stderr)
            raise


if __name__ == "__main__":
    main()
