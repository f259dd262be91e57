//! Sliding windows: an event is in several, or in none.

use super::tell;

#[test]
fn an_event_is_in_each_window_that_has_it() {
    tell(
        "sliding 20 every 10",
        "
        a5=1 a15=2 |
        W10        | a [-10,10) 0 ON_TIME n=1 sum=1
        W20        | a [0,20) 0 ON_TIME n=2 sum=3
        W30        | a [10,30) 0 ON_TIME n=1 sum=2
                   | open 0
        ",
    );
}

#[test]
fn on_a_boundary() {
    tell(
        "sliding 20 every 10",
        "
        a10=1 |
        Wend  | a [0,20) 0 ON_TIME n=1 sum=1
              | a [10,30) 0 ON_TIME n=1 sum=1
        ",
    );
}

#[test]
fn late_for_some_and_not_for_others() {
    tell(
        "sliding 20 every 10, lateness 5",
        "
        W15   |
        a5=1  | missed a [-10,10)
        W20   | a [0,20) 0 ON_TIME n=1 sum=1
        W22   |
        a5=2  | missed a [-10,10)
              | a [0,20) 1 LATE n=2 sum=3
        a15=4 | a [0,20) 2 LATE n=3 sum=7
        W30   | a [10,30) 0 ON_TIME n=1 sum=4
        ",
    );
}

#[test]
fn between_windows_there_may_be_gaps() {
    tell(
        "sliding 5 every 10",
        "
        a4=1 a5=2 a9=4 a10=8 | open 2
        Wend                 | a [0,5) 0 ON_TIME n=1 sum=1
                             | a [10,15) 0 ON_TIME n=1 sum=8
        ",
    );
}

#[test]
fn a_size_that_is_no_multiple() {
    tell(
        "sliding 15 every 10",
        "
        a4=1 a5=2 a-1=4 | open 2
        W5              | a [-10,5) 0 ON_TIME n=2 sum=5
        W15             | a [0,15) 0 ON_TIME n=2 sum=3
        ",
    );
    tell(
        "sliding 7 every 3 from 1",
        "
        a0=1 |
        Wend | a [-5,2) 0 ON_TIME n=1 sum=1
             | a [-2,5) 0 ON_TIME n=1 sum=1
        ",
    );
}

#[test]
fn early_and_late_panes_are_of_each_window_by_itself() {
    tell(
        "sliding 20 every 10, early 5, late 7, lateness 12",
        "
        a5=1 |
        P5   | a [-10,10) 0 EARLY n=1 sum=1
             | a [0,20) 0 EARLY n=1 sum=1
        W10  | a [-10,10) 1 ON_TIME n=1 sum=1
        a6=2 |
        P10  | a [0,20) 1 EARLY n=2 sum=3
        P12  | a [-10,10) 2 LATE n=2 sum=3
        W22  | a [0,20) 2 ON_TIME n=2 sum=3
             | open 1
        ",
    );
}

#[test]
fn discarding() {
    tell(
        "sliding 20 every 10, discarding, early 5, lateness 5",
        "
        a5=1 |
        P5   | a [-10,10) 0 EARLY n=1 sum=1
             | a [0,20) 0 EARLY n=1 sum=1
        a6=2 |
        W10  | a [-10,10) 1 ON_TIME n=1 sum=2
        P10  | a [0,20) 1 EARLY n=1 sum=2
        W20  | a [0,20) 2 ON_TIME n=0 sum=null
        a7=4 | missed a [-10,10)
             | a [0,20) 3 LATE n=1 sum=4
        ",
    );
}

#[test]
fn late_panes_that_wait_and_are_discarded() {
    tell(
        "sliding 20 every 10, discarding, late 7, lateness 12",
        "
        a5=1 W10 | a [-10,10) 0 ON_TIME n=1 sum=1
        a6=2     |
        P7       | a [-10,10) 1 LATE n=1 sum=2
        W20      | a [0,20) 0 ON_TIME n=2 sum=3
        a7=4     |
        W22      | a [-10,10) 2 LATE n=1 sum=4
                 | open 1
        P14      | a [0,20) 1 LATE n=1 sum=4
        ",
    );
}
