//! Fixed windows, ten microseconds long: what fires when, in every mode.

use super::tell;

#[test]
fn at_the_watermark() {
    tell(
        "fixed 10",
        "
        a3=1 a9=2 b5=8 a10=4 |
        W9                   | open 3
        W10                  | a [0,10) 0 ON_TIME n=2 sum=3
                             | b [0,10) 0 ON_TIME n=1 sum=8
                             | open 1
        a9=16                | missed a [0,10)
        W25                  | a [10,20) 0 ON_TIME n=1 sum=4
                             | open 0
        ",
    );
}

/// The watermark of a commit is that of the events of the next one.
#[test]
fn events_see_the_watermark_that_was_committed_before_theirs() {
    tell(
        "fixed 10",
        "
        a3=1 W10 | a [0,10) 0 ON_TIME n=1 sum=1
        a4=2 W20 | missed a [0,10)
        a25=4 W5 |
        a26=8    |
        W30      | a [20,30) 0 ON_TIME n=2 sum=12
        ",
    );
}

#[test]
fn an_event_on_a_boundary_is_in_the_window_that_begins_there() {
    tell(
        "fixed 10",
        "
        a0=1 a10=2 a20=4 |
        Wend             | a [0,10) 0 ON_TIME n=1 sum=1
                         | a [10,20) 0 ON_TIME n=1 sum=2
                         | a [20,30) 0 ON_TIME n=1 sum=4
                         | open 0
        ",
    );
}

#[test]
fn windows_can_be_shifted() {
    tell(
        "fixed 10 from 3",
        "
        a2=1 a3=2 a12=4 a13=8 |
        W3                    | a [-7,3) 0 ON_TIME n=1 sum=1
        W13                   | a [3,13) 0 ON_TIME n=2 sum=6
        W23                   | a [13,23) 0 ON_TIME n=1 sum=8
        ",
    );
}

#[test]
fn before_1970() {
    tell(
        "fixed 10, lateness 5",
        "
        a-1=1 a-10=2 a-11=4 a0=8 |
        W-10                     | a [-20,-10) 0 ON_TIME n=1 sum=4
        W0                       | a [-10,0) 0 ON_TIME n=2 sum=3
                                 | open 2
        a-3=16                   | a [-10,0) 1 LATE n=3 sum=19
        W5                       | open 1
        a-3=32                   | missed a [-10,0)
        ",
    );
}

/// The watermark exactly at the end and exactly at end and lateness.
#[test]
fn late_events_until_the_allowed_lateness_is_over() {
    tell(
        "fixed 10, lateness 20",
        "
        a3=1      |
        W10       | a [0,10) 0 ON_TIME n=1 sum=1
        a4=2 a5=4 | a [0,10) 1 LATE n=3 sum=7
        W29       | open 1
        a9=8      | a [0,10) 2 LATE n=4 sum=15
        W30       | open 0
        a9=16     | missed a [0,10)
        ",
    );
}

#[test]
fn late_events_of_discarding_panes() {
    tell(
        "fixed 10, lateness 20, discarding",
        "
        a3=1      |
        W10       | a [0,10) 0 ON_TIME n=1 sum=1
        a4=2 a5=4 | a [0,10) 1 LATE n=2 sum=6
        a9=8      | a [0,10) 2 LATE n=1 sum=8
        ",
    );
}

#[test]
fn the_first_event_of_a_window_may_come_behind_its_end() {
    tell(
        "fixed 10, lateness 20",
        "
        W15  | open 0
        a3=1 | a [0,10) 0 LATE n=1 sum=1
             | open 1
        W30  | open 0
        ",
    );
}

#[test]
fn early_panes() {
    tell(
        "fixed 10, early 5",
        "
        P100 a3=1 |
        P104 a4=2 |
        P105      | a [0,10) 0 EARLY n=2 sum=3
        P300      |
        a5=4      |
        P304      |
        P305      | a [0,10) 1 EARLY n=3 sum=7
        W10       | a [0,10) 2 ON_TIME n=3 sum=7
        ",
    );
}

/// The last has nothing: it says that all was said.
#[test]
fn early_panes_that_are_discarded() {
    tell(
        "fixed 10, early 5, discarding",
        "
        P100 a3=1 |
        P105 a4=2 | a [0,10) 0 EARLY n=2 sum=3
        a5=4      |
        P110      | a [0,10) 1 EARLY n=1 sum=4
        W10       | a [0,10) 2 ON_TIME n=0 sum=null
        ",
    );
}

#[test]
fn a_window_that_is_over_fires_no_early_pane_any_more() {
    tell(
        "fixed 10, early 5, lateness 20",
        "
        a3=1   |
        P5 W10 | a [0,10) 0 ON_TIME n=1 sum=1
        P9     |
        ",
    );
}

#[test]
fn late_panes_that_wait_for_more() {
    tell(
        "fixed 10, lateness 20, late 7",
        "
        a3=1     |
        W10      | a [0,10) 0 ON_TIME n=1 sum=1
        P100     |
        a4=2     |
        P106     |
        a5=4     |
        P107     | a [0,10) 1 LATE n=3 sum=7
        P200     |
        a6=8     |
        P201 W30 | a [0,10) 2 LATE n=4 sum=15
                 | open 0
        P300     |
        ",
    );
}

#[test]
fn late_panes_that_wait_and_are_discarded() {
    tell(
        "fixed 10, lateness 20, late 7, discarding",
        "
        W15       |
        P100 a3=1 | a [0,10) 0 LATE n=1 sum=1
        a4=2      |
        a5=4      |
        P107      | a [0,10) 1 LATE n=2 sum=6
        Wend      | open 0
        ",
    );
}

#[test]
fn early_and_late_panes() {
    tell(
        "fixed 10, lateness 20, early 5, late 7",
        "
        a3=1   |
        P5     | a [0,10) 0 EARLY n=1 sum=1
        a4=2   |
        P8 W10 | a [0,10) 1 ON_TIME n=2 sum=3
        a5=4   |
        P14    |
        P15    | a [0,10) 2 LATE n=3 sum=7
        W30    | open 0
        ",
    );
}

#[test]
fn a_watermark_that_goes_back_changes_nothing() {
    tell(
        "fixed 10",
        "
        a3=1 W10 | a [0,10) 0 ON_TIME n=1 sum=1
        W2       |
        a4=2     | missed a [0,10)
        ",
    );
}

#[test]
fn what_has_no_value_is_counted_and_adds_nothing() {
    tell(
        "fixed 10, lateness 20",
        "
        a3=null |
        W10     | a [0,10) 0 ON_TIME n=1 sum=null
        a3=-5   | a [0,10) 1 LATE n=2 sum=-5
        ",
    );
}
