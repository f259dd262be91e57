//! Commands with a stop watch.

use anyhow::{Context, Result, ensure};
use preflight_tests::Pipeline;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Runs to the end. Seconds from start to exit, and the peak of resident memory in MiB.
pub(crate) fn timed(pipeline: &Pipeline) -> Result<(f64, f64)> {
    let mut command = pipeline.command("run");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let (took, _) = timed_command(command)?;
    Ok((took.seconds, took.peak))
}

/// What a command took.
pub(crate) struct Took {
    /// From start to exit.
    pub(crate) seconds: f64,
    /// Processor time of the process and of those that it has started and waited for, in its own code and in the kernel's.
    pub(crate) processor: f64,
    /// Peak of resident memory of the process, in MiB.
    pub(crate) peak: f64,
}

/// Runs to the end, and gives what was printed where standard output is piped: so little that it fits into a pipe.
pub(crate) fn timed_command(mut command: Command) -> Result<(Took, Vec<u8>)> {
    let before = processor_of_children()?;
    let started = Instant::now();
    let mut child = command.spawn().with_context(|| format!("{} can be started", command.get_program().display()))?;
    let peak = watch(&mut child)?;
    let seconds = started.elapsed().as_secs_f64();
    let processor = processor_of_children()? - before;
    let mut printed = Vec::new();
    if let Some(mut output) = child.stdout.take() {
        output.read_to_end(&mut printed)?;
    }
    Ok((Took { seconds, processor, peak }, printed))
}

/// Waits for the end, reading the kernel's high-water mark of resident memory on the way.
fn watch(child: &mut Child) -> Result<f64> {
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak = 0.0_f64;
    loop {
        if let Some(kib) = std::fs::read_to_string(&status_file).ok().as_deref().and_then(high_water) {
            peak = peak.max(kib / 1024.0);
        }
        if let Some(status) = child.try_wait()? {
            ensure!(status.success(), "the run failed: {status}");
            return Ok(peak);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Seconds of processor time of all children that have ended.
fn processor_of_children() -> Result<f64> {
    // What Linux counts in, whatever the machine (`USER_HZ`).
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The name of the program, in parentheses, may have blanks. Behind it the state is the third field, `cutime` the 16th.
    let (_, behind_the_name) = stat.rsplit_once(')').context("the kernel names the program")?;
    let mut fields = behind_the_name.split_whitespace().skip(13);
    let mut ticks = || fields.next().context("the kernel counts processor time")?.parse::<f64>().context("in ticks");
    Ok((ticks()? + ticks()?) / TICKS_PER_SECOND)
}

fn high_water(status: &str) -> Option<f64> {
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
