//! ShopFlow's orders as CSV files: the same bytes for the same seed, with as many duplicates, rejections and orders of each status as
//! are said beforehand.
//!
//! `orders-1.csv`, … hold the lines, each file with its header. What is to come of them is beside them: `expected/counts.json`, and
//! `expected/rejected.csv` with the rejected lines as they stand in the files, in their order, without a header. Lines are written as they are made:
//! any number of them takes the same memory.

mod fault;
mod orders;
mod random;
mod shape;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result, ensure};

use fault::FAULTS;
use orders::{HEADER, Orders};
pub use shape::{STATUSES, Shape};

/// Good lines that may be said again: the last so many.
const WINDOW: usize = 1_000;

/// What to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Other seeds, other lines.
    pub seed: u64,
    /// Lines of each kind.
    pub shape: Shape,
    /// Files that they are in, at least 1.
    pub files: u64,
}

/// Writes the files into a directory that is empty or is made. Fails when it is not, or when they cannot be written.
pub fn write(request: &Request, directory: &Path) -> Result<()> {
    let expected = directory.join("expected");
    std::fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let mut entries = std::fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    ensure!(entries.next().is_none(), "{} is not empty: what is there would be taken for orders", directory.display());
    std::fs::create_dir(&expected).with_context(|| format!("cannot create {}", expected.display()))?;

    let mut rejected = create(&expected.join("rejected.csv"))?;
    let mut lines = Lines::new(request);
    for file in 0..request.files {
        let mut orders = create(&directory.join(format!("orders-{}.csv", file + 1)))?;
        writeln!(orders, "{HEADER}")?;
        // The first files have one line more where they cannot all have the same.
        let count = request.shape.lines / request.files + u64::from(file < request.shape.lines % request.files);
        for _ in 0..count {
            let (line, is_bad) = lines.next();
            orders.write_all(line)?;
            if is_bad {
                rejected.write_all(line)?;
            }
        }
        orders.flush()?;
    }
    rejected.flush()?;
    let counts = expected.join("counts.json");
    std::fs::write(&counts, counts_json(request, &lines.by_stage))
        .with_context(|| format!("cannot write {}", counts.display()))
}

fn create(file: &Path) -> Result<BufWriter<File>> {
    let created = File::create(file).with_context(|| format!("cannot create {}", file.display()))?;
    Ok(BufWriter::with_capacity(1 << 20, created))
}

/// Decides what comes next. Each kind of line is as likely as it has lines left, so that all have come at the end, in an order of no meaning.
struct Lines {
    orders: Orders,
    left: Shape,
    bad: usize,
    by_stage: BTreeMap<&'static str, u64>,
    /// The last good lines, the oldest one to be replaced next.
    window: Vec<String>,
    oldest: usize,
    line: String,
}

impl Lines {
    fn new(request: &Request) -> Self {
        let shape = request.shape;
        let orders = Orders::new(request.seed, shape.lines - shape.duplicates);
        Self {
            orders,
            left: shape,
            bad: 0,
            by_stage: BTreeMap::new(),
            window: Vec::new(),
            oldest: 0,
            line: String::new(),
        }
    }

    /// The next line with its end, and whether it is a bad one.
    fn next(&mut self) -> (&[u8], bool) {
        let is_bad = self.make();
        self.line.push('\n');
        (self.line.as_bytes(), is_bad)
    }

    fn make(&mut self) -> bool {
        // Nothing can be said again before it was said.
        let duplicates = if self.window.is_empty() { 0 } else { self.left.duplicates };
        let mut chosen = self.orders.random().below(duplicates + self.left.rejected + self.left.accepted());
        if chosen < duplicates {
            self.left.duplicates -= 1;
            let said = self.orders.random().index(self.window.len());
            self.line.clone_from(&self.window[said]);
            return false;
        }
        chosen -= duplicates;
        if chosen < self.left.rejected {
            self.left.rejected -= 1;
            let fault = FAULTS[self.bad % FAULTS.len()];
            self.bad += 1;
            *self.by_stage.entry(fault.stage()).or_default() += 1;
            self.orders.bad(fault, &mut self.line);
            return true;
        }
        chosen -= self.left.rejected;
        let mut status = 0;
        while chosen >= self.left.by_status[status] {
            chosen -= self.left.by_status[status];
            status += 1;
        }
        self.left.by_status[status] -= 1;
        self.orders.good(status, &mut self.line);
        self.remember();
        false
    }

    fn remember(&mut self) {
        if self.window.len() < WINDOW {
            self.window.push(self.line.clone());
        } else {
            self.window[self.oldest].clone_from(&self.line);
            self.oldest = (self.oldest + 1) % WINDOW;
        }
    }
}

/// `{"lines": …, "duplicates": …, "rejected": …, "accepted": …, "by_status": {…}, "by_stage": {…}}`, in lines.
fn counts_json(request: &Request, by_stage: &BTreeMap<&'static str, u64>) -> String {
    let Request { seed, shape, files } = request;
    let object = |counts: &mut dyn Iterator<Item = (&str, u64)>| {
        counts.map(|(name, count)| format!("\"{name}\": {count}")).collect::<Vec<_>>().join(", ")
    };
    let by_status = object(&mut STATUSES.into_iter().zip(shape.by_status));
    let by_stage = object(&mut by_stage.iter().map(|(stage, count)| (*stage, *count)));
    let (lines, duplicates, rejected, accepted) = (shape.lines, shape.duplicates, shape.rejected, shape.accepted());
    format!(
        "{{\n  \"seed\": {seed},\n  \"files\": {files},\n  \"lines\": {lines},\n  \"duplicates\": {duplicates},\n  \
         \"rejected\": {rejected},\n  \"accepted\": {accepted},\n  \"by_status\": {{{by_status}}},\n  \
         \"by_stage\": {{{by_stage}}}\n}}\n"
    )
}

#[cfg(test)]
mod tests;
