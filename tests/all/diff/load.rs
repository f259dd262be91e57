//! Big inputs.

use super::*;
use preflight_tests::bookings;
use std::io::Write as _;
use std::process::{Command, Stdio};

fn high_water(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Processor time of each thread that judges, in ticks.
fn judged_for(pid: u32) -> Vec<u64> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let stats = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("stat")).ok());
    stats
        .filter(|stat| stat.contains("(judge-"))
        .map(|stat| stat.rsplit(") ").next().unwrap().split(' ').nth(11).unwrap().parse().unwrap())
        .collect()
}

/// 40 MB of events from standard input, of which some megabytes are held at a time, and every thread has its share.
#[test]
fn a_big_input_is_judged_on_all_cores_in_bounded_memory() {
    let mut command = Command::new(paths::preflight());
    command.args(["diff", text(&v1()), text(&v2()), "--input", "-", "--json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(bookings::lines(200_000).as_bytes()).unwrap();
    // All but the last micro-batches is judged by now: what is not judged is not read.
    let (kib, ticks) = (high_water(child.id()), judged_for(child.id()));
    drop(stdin);
    let ended = Ended::from_output(child.wait_with_output().unwrap()).expect(3);
    assert_eq!(kinds(&ended.json()), [("accept→reject BUSINESS_RULE_VALIDATION", 145_455)]);
    assert!(kib < 64 << 10, "{kib} KiB");
    assert!(!ticks.is_empty() && ticks.iter().all(|ticks| *ticks > 0), "{ticks:?}");
}
