//! Every limit, from both sides.

use preflight::rules::Limits;
use preflight::verdict::{FaultCode, Verdict};
use preflight_tests::Guest;
use std::time::{Duration, Instant};

/// The largest number that is good, between one that is and one that is not.
fn bisect(mut good: u64, mut bad: u64, is_good: impl Fn(u64) -> bool) -> u64 {
    assert!(is_good(good) && !is_good(bad), "the edge lies between {good} and {bad}");
    while bad - good > 1 {
        let middle = u64::midpoint(good, bad);
        if is_good(middle) { good = middle } else { bad = middle }
    }
    good
}

/// A payload of the same length for every number, so that only the number decides.
fn spin(turns: u64) -> String {
    format!("spin:{turns:09}")
}

#[test]
fn a_guest_that_spins_for_ever_runs_out_of_fuel() {
    let fault = Guest::default().fault("spin");
    assert_eq!(fault.code, FaultCode::Fuel);
    assert!(fault.detail.contains("fuel"), "{}", fault.detail);
}

/// An instance that had judged others accepted an event that a fresh one had no fuel for.
#[test]
fn the_edge_of_the_fuel_is_the_same_every_time_and_in_every_place() {
    let limits = || Limits { fuel_base: 200_000, fuel_per_byte: 0, ..Limits::default() };
    let fits = |turns| Guest::new(limits()).judge(&spin(turns)).verdict.is_ok();
    let edge = bisect(1, 1_000_000, fits);
    let mut reused = Guest::new(limits());
    for repeat in 0..20 {
        assert!(fits(edge), "repeat {repeat}");
        assert!(!fits(edge + 1), "repeat {repeat}");
        // In an instance that has judged others, each is told the same.
        reused.accepts(&spin(edge));
        assert_eq!(reused.fault(&spin(edge + 1)).code, FaultCode::Fuel, "repeat {repeat}");
    }
}

#[test]
fn fuel_grows_with_the_payload() {
    let mut guest = Guest::new(Limits { fuel_base: 100_000, fuel_per_byte: 400, ..Limits::default() });
    let spin = |width: usize| format!("spin:{:0width$}", 50_000);
    assert_eq!(guest.fault(&spin(9)).code, FaultCode::Fuel);
    guest.accepts(&spin(20_000));
}

#[test]
fn a_guest_that_allocates_for_ever_meets_the_limit_of_memory() {
    let fault = Guest::default().fault("allocate");
    assert_eq!(fault.code, FaultCode::Memory, "not a panic, although the guest aborts: {}", fault.detail);
    assert!(fault.detail.ends_with(&format!("the limit is {}", 64 << 20)), "{}", fault.detail);
}

/// An instance that had judged others accepted an event that a fresh one had no memory for.
#[test]
fn memory_just_under_the_limit_is_given() {
    let limits = || Limits { memory: 16 << 20, ..Limits::default() };
    let fits = |bytes| Guest::new(limits()).judge(&format!("allocate:{bytes:09}")).verdict.is_ok();
    let edge = bisect(1, 20 << 20, fits);
    assert!(edge > 14 << 20, "{edge}: the guest itself needs little");
    let mut guest = Guest::new(limits());
    for _ in 0..5 {
        guest.accepts(&format!("allocate:{edge:09}"));
        assert_eq!(guest.fault(&format!("allocate:{:09}", edge + 1)).code, FaultCode::Memory);
    }
}

#[test]
fn a_payload_that_the_guest_has_no_memory_for_is_a_fault_of_memory() {
    let mut guest = Guest::new(Limits { memory: 4 << 20, ..Limits::default() });
    assert_eq!(guest.fault(&" ".repeat(5 << 20)).code, FaultCode::Memory);
    guest.accepts(&format!("spin:{}1", "0".repeat(500_000)));
}

#[test]
fn tables_count_too() {
    let judged = Guest::new(Limits { table_elements: 1, ..Limits::default() }).judge("ok");
    let fault = judged.verdict.unwrap_err();
    assert_eq!(fault.code, FaultCode::Memory);
    assert!(fault.detail.contains("table elements"), "{}", fault.detail);
    Guest::new(Limits { table_elements: 1_000, ..Limits::default() }).accepts("ok");
}

#[test]
fn a_guest_that_recurses_for_ever_overflows_its_stack_and_not_ours() {
    assert_eq!(Guest::default().fault("recurse").code, FaultCode::Stack);
}

#[test]
fn recursion_just_under_the_stack_is_let_be() {
    let depth = |frames| Guest::default().judge(&format!("recurse:{frames:09}")).verdict;
    let edge = bisect(1, 10_000_000, |frames| depth(frames).is_ok());
    assert!(edge > 1_000, "{edge}");
    assert_eq!(depth(edge + 1).unwrap_err().code, FaultCode::Stack);
    let mut guest = Guest::default();
    guest.accepts(&format!("recurse:{edge:09}"));
    guest.accepts(&format!("recurse:{edge:09}"));
}

#[test]
fn the_stack_in_linear_memory_ends_below_address_zero() {
    let fault = Guest::default().fault("recurse-big");
    assert_eq!(fault.code, FaultCode::Trap);
    assert!(fault.detail.contains("out of bounds memory access"), "{}", fault.detail);
}

#[test]
fn the_wall_clock_stops_what_fuel_would_not() {
    let wall_clock = Duration::from_millis(100);
    let mut guest = Guest::new(Limits { fuel_base: u64::MAX, wall_clock, ..Limits::default() });
    let started = Instant::now();
    let fault = guest.fault("spin");
    assert_eq!(fault.code, FaultCode::WallClock);
    assert!(fault.detail.contains("limits.wall_clock"), "{}", fault.detail);
    assert!(started.elapsed() >= 2 * wall_clock, "it was judged again alone");
    guest.accepts("spin:1000");
}

#[test]
fn more_data_than_the_limit_breaks_the_abi() {
    let limits = || Limits { result: 1 << 20, fuel_base: 1_000_000_000, ..Limits::default() };
    for what in ["text", "bytes", "reason", "ignore", "panic-long", "log-long"] {
        let mut guest = Guest::new(limits());
        let fault = guest.fault(&format!("{what}:{}", (1 << 20) + 1));
        assert_eq!(fault.code, FaultCode::Abi, "{what}");
        assert!(fault.detail.contains("limits.result"), "{what}: {}", fault.detail);
        let under = guest.judge(&format!("{what}:{}", (1 << 20) - 4_096));
        assert_eq!(under.verdict.err().map(|fault| fault.code), (what == "panic-long").then_some(FaultCode::Panic));
    }
    let mut guest = Guest::new(limits());
    assert_eq!(guest.fault("values:200_000").code, FaultCode::Abi, "a long list of small things");
    assert_eq!(guest.fault("values:1_000").code, FaultCode::Manifest, "a short one is looked at");
}

#[test]
fn a_hundred_megabytes_of_text_do_not_come_through() {
    assert_eq!(Guest::default().fault("text:100_000_000").code, FaultCode::Memory);
    let roomy = Limits { memory: 512 << 20, fuel_base: 10_000_000_000, ..Limits::default() };
    assert_eq!(Guest::new(roomy).fault("text:100_000_000").code, FaultCode::Abi);
}

#[test]
fn a_guest_that_logs_for_ever_runs_out_of_fuel() {
    assert_eq!(Guest::default().fault("log").code, FaultCode::Fuel);
    Guest::default().accepts("log:100");
}

#[test]
fn long_reasons_are_clipped_and_not_refused() {
    let mut guest = Guest::default();
    for (bytes, kept) in [(4_000, 4_000), (4_001, 4_000), (1_000_000, 4_000)] {
        match guest.verdict(&format!("reason:{bytes}")) {
            Verdict::Reject(rejection) => assert_eq!(rejection.reason.len(), kept),
            other => panic!("{other:?}"),
        }
        match guest.verdict(&format!("ignore:{bytes}")) {
            Verdict::Ignore(reason) => assert_eq!(reason.len(), kept),
            other => panic!("{other:?}"),
        }
    }
}
