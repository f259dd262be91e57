//! Event time: windows, watermark, late data, aggregates.

mod challenge;
mod exactly;
mod limits;
mod live;
mod measures;
