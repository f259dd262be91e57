//! Traps and broken contracts: each has its code, and a detail that says what happened.

use preflight::verdict::FaultCode;
use preflight_tests::Guest;

#[test]
fn each_kind_of_fault_has_its_code() {
    let mut guest = Guest::default();
    for (payload, code, detail) in [
        ("trap", FaultCode::Panic, "without last words"),
        ("divide", FaultCode::Trap, "divide by zero"),
        ("oob", FaultCode::Trap, "out of bounds memory access"),
        ("bad-utf8", FaultCode::Abi, "utf-8"),
        ("bad-utf8-reason", FaultCode::Abi, "utf-8"),
        ("bad-pointer", FaultCode::Abi, "out of bounds"),
        ("spin-in-post-return", FaultCode::Fuel, "fuel"),
        ("trap-in-post-return", FaultCode::Panic, "without last words"),
        // An error of the sandbox, it was said; the worker ended, and ended again at each start.
        ("log-in-post-return", FaultCode::Abi, "called an import from cabi_realloc or post-return"),
        ("lookup", FaultCode::Import, "`no_such_table`"),
        ("no such thing", FaultCode::Panic, "no such directive: no such thing"),
        ("", FaultCode::Panic, "no such directive"),
    ] {
        let fault = guest.fault(payload);
        assert_eq!(fault.code, code, "{payload}: {}", fault.detail);
        assert!(fault.detail.contains(detail), "{payload}: {}", fault.detail);
    }
}

#[test]
fn a_panics_text_is_the_faults_detail() {
    let fault = Guest::default().fault("panic:fare table is empty: é");
    assert_eq!((fault.code, fault.detail.as_str()), (FaultCode::Panic, "fare table is empty: é"));
}

#[test]
fn a_long_panic_is_clipped() {
    let mut guest = Guest::default();
    assert_eq!(guest.fault("panic-long:1000").detail, "x".repeat(1_000));
    let detail = guest.fault("panic-long:100000").detail;
    assert!(detail.len() <= 1_000 && detail.ends_with('…'), "{} bytes", detail.len());
}

#[test]
fn last_words_belong_to_their_event() {
    let mut guest = Guest::default();
    assert_eq!(guest.fault("panic:mine").detail, "mine");
    assert!(!guest.fault("trap").detail.contains("mine"));
}

#[test]
fn a_refused_allocation_does_not_explain_a_later_fault() {
    let mut guest = Guest::default();
    assert_eq!(guest.fault("allocate").code, FaultCode::Memory);
    assert_eq!(guest.fault("divide").code, FaultCode::Trap);
}
