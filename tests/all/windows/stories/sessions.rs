//! Sessions, with gaps of ten microseconds: they grow and merge, and what was said of a part is taken back with the first pane of the whole.

use super::tell;

#[test]
fn a_session_ends_a_gap_behind_its_last_event() {
    tell(
        "session 10",
        "
        a0=1 a9=2 b3=4 | open 2
        W13            | b [3,13) 0 ON_TIME n=1 sum=4
        W19            | a [0,19) 0 ON_TIME n=2 sum=3
                       | open 0
        ",
    );
}

#[test]
fn exactly_a_gap_apart_are_two() {
    tell(
        "session 10",
        "
        a0=1 a10=2 | open 2
        a-9=4      | open 2
        Wend       | a [-9,10) 0 ON_TIME n=2 sum=5
                   | a [10,20) 0 ON_TIME n=1 sum=2
        ",
    );
}

#[test]
fn what_was_not_said_is_not_taken_back() {
    tell(
        "session 10",
        "
        a0=1 a18=2 | open 2
        a9=4       | open 1
        W28        | a [0,28) 0 ON_TIME n=3 sum=7
        ",
    );
}

#[test]
fn a_session_that_fired_goes_on() {
    tell(
        "session 10, lateness 20",
        "
        a0=1 a5=2 |
        W16       | a [0,15) 0 ON_TIME n=2 sum=3
        a14=4     |
        W24       | a [0,15) 1 RETRACTED
                  | a [0,24) 0 ON_TIME n=3 sum=7
        ",
    );
}

#[test]
fn a_late_event_within_a_session_does_not_change_it() {
    tell(
        "session 10, lateness 20",
        "
        a0=1 a9=2 |
        W19       | a [0,19) 0 ON_TIME n=2 sum=3
        a4=4      | a [0,19) 1 LATE n=3 sum=7
        ",
    );
}

#[test]
fn a_late_event_between_two_sessions_makes_them_one() {
    tell(
        "session 10, lateness 30",
        "
        a0=1 a15=2 |
        W25        | a [0,10) 0 ON_TIME n=1 sum=1
                   | a [15,25) 0 ON_TIME n=1 sum=2
        a9=4       | a [0,10) 1 RETRACTED
                   | a [15,25) 1 RETRACTED
                   | a [0,25) 0 LATE n=3 sum=7
                   | open 1
        a24=8      |
        W34        | a [0,25) 1 RETRACTED
                   | a [0,34) 0 ON_TIME n=4 sum=15
        ",
    );
}

/// What was told before is void, so the merged session tells everything.
#[test]
fn discarding_panes_of_a_merged_session() {
    tell(
        "session 10, lateness 20, discarding",
        "
        a0=1   |
        W10    | a [0,10) 0 ON_TIME n=1 sum=1
        a0=2   | a [0,10) 1 LATE n=1 sum=2
        a9=4   |
        W19    | a [0,10) 2 RETRACTED
               | a [0,19) 0 ON_TIME n=3 sum=7
        a9=8   | a [0,19) 1 LATE n=1 sum=8
        a-5=16 | a [0,19) 2 RETRACTED
               | a [-5,19) 0 LATE n=5 sum=31
        ",
    );
}

#[test]
fn early_panes_are_taken_back_too() {
    tell(
        "session 10, early 5",
        "
        a0=1     |
        P5       | a [0,10) 0 EARLY n=1 sum=1
        a5=2     |
        P8 a-5=4 |
        P10      | a [0,10) 1 RETRACTED
                 | a [-5,15) 0 EARLY n=3 sum=7
        W15      | a [-5,15) 1 ON_TIME n=3 sum=7
        ",
    );
}

/// The early pane of a session that grows has everything, since what was said of it is void; the next has what is new.
#[test]
fn early_panes_that_are_discarded() {
    tell(
        "session 10, early 5, discarding",
        "
        a0=1     |
        P5       | a [0,10) 0 EARLY n=1 sum=1
        a0=2     |
        P10      | a [0,10) 1 EARLY n=1 sum=2
        P11 a5=4 |
        P16      | a [0,10) 2 RETRACTED
                 | a [0,15) 0 EARLY n=3 sum=7
        a1=8     |
        W15      | a [0,15) 1 ON_TIME n=1 sum=8
        ",
    );
}

/// Of the early panes that two sessions wait for, the one that they become has that which is due first.
#[test]
fn of_two_that_wait_the_earlier_is_waited_for() {
    tell(
        "session 10, early 5",
        "
        P1 a0=1  |
        P3 a15=2 |
        P4 a8=4  |
        P5       |
        P6       | a [0,25) 0 EARLY n=3 sum=7
        P9       |
        ",
    );
}

/// Those that merge do not know yet which was first: panes wait as if nothing had been said since.
#[test]
fn late_panes_that_wait() {
    tell(
        "session 10, lateness 30, late 7",
        "
        a0=1      |
        W25       | a [0,10) 0 ON_TIME n=1 sum=1
        P1        |
        a0=2      |
        P3 a9=4   |
        P7        |
        P8        | a [0,10) 1 RETRACTED
                  | a [0,19) 0 LATE n=3 sum=7
        P10 a12=8 |
        P20       | a [0,19) 1 RETRACTED
                  | a [0,22) 0 LATE n=4 sum=15
        ",
    );
}

#[test]
fn late_panes_that_wait_and_are_discarded() {
    tell(
        "session 10, lateness 30, late 7, discarding",
        "
        a0=1 W25 | a [0,10) 0 ON_TIME n=1 sum=1
        a0=2     |
        P7       | a [0,10) 1 LATE n=1 sum=2
        a0=4     |
        P9 a5=8  |
        P14      | a [0,10) 2 RETRACTED
                 | a [0,15) 0 LATE n=4 sum=15
        ",
    );
}

#[test]
fn what_came_late_is_in_time_again_when_the_session_goes_on() {
    tell(
        "session 10, lateness 20, late 7",
        "
        a0=1 |
        W10  | a [0,10) 0 ON_TIME n=1 sum=1
        a0=2 |
        a9=4 |
        P7   |
        W19  | a [0,10) 1 RETRACTED
             | a [0,19) 0 ON_TIME n=3 sum=7
        ",
    );
}

/// By itself it would be too late; the session that it is a part of is not.
#[test]
fn an_event_is_not_late_for_a_session_that_still_takes_events() {
    tell(
        "session 10, lateness 20",
        "
        a100=1 a109=2 |
        W138          | a [100,119) 0 ON_TIME n=2 sum=3
        a95=4         | a [100,119) 1 RETRACTED
                      | a [95,119) 0 LATE n=3 sum=7
        a80=8         | missed a [80,90)
        W139          | open 0
        a96=16        | missed a [96,106)
        ",
    );
}

/// A session that is dropped is not known any more: what would have been a part of it is one of its own.
#[test]
fn a_session_begins_anew_where_an_old_one_is_dropped() {
    tell(
        "session 10",
        "
        a0=1 |
        W10  | a [0,10) 0 ON_TIME n=1 sum=1
             | open 0
        a5=2 | open 1
        W15  | a [5,15) 0 ON_TIME n=1 sum=2
        ",
    );
}

/// In one commit the first is too late by itself, and the second would have been without the third.
#[test]
fn within_a_commit_events_count_in_their_order() {
    tell(
        "session 10",
        "
        a0=1           |
        W15            | a [0,10) 0 ON_TIME n=1 sum=1
        a4=2 a6=4 a2=8 | missed a [4,14)
                       | open 1
        W16            | a [2,16) 0 ON_TIME n=2 sum=12
        ",
    );
}

#[test]
fn everything_at_once_at_the_end() {
    tell(
        "session 10, early 5, late 7, lateness 20, discarding",
        "
        a0=1 a20=2 b0=4 |
        Wend            | a [0,10) 0 ON_TIME n=1 sum=1
                        | b [0,10) 0 ON_TIME n=1 sum=4
                        | a [20,30) 0 ON_TIME n=1 sum=2
                        | open 0
        ",
    );
}
