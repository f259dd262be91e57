//! Event time: windows, watermark, late data, aggregates.

mod exactly;
mod measures;
