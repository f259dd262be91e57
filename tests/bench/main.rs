//! The benchmark.

fn main() {}
