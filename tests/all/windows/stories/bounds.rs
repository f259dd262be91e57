//! The ends of time, and windows that are very short or very long. A table holds the years 1 to 9999.

use super::tell;

/// 366 days, the longest that a pipeline file may say; `first` is 719,162 days before 1970, `last` is 2,932,897 days behind it, less a
/// microsecond; the windows are counted from 1970, and cut.
#[test]
fn in_the_first_and_in_the_last_year() {
    tell(
        "fixed 31622400000000, lateness 31622400000000",
        "
        afirst=1 alast=2 | open 2
        W0               | a [first,first+29203200000000) 0 ON_TIME n=1 sum=1
                         | open 1
        alast-1=4        |
        Wlast            | a [last-12009599999999,last) 0 ON_TIME n=2 sum=6
                         | open 1
        alast=8          | a [last-12009599999999,last) 1 LATE n=3 sum=14
        Wend             | open 0
        ",
    );
}

#[test]
fn sliding_windows_are_cut_where_tables_end() {
    tell(
        "sliding 20 every 10",
        "
        afirst=1 alast=2 |
        Wend             | a [first,first+10) 0 ON_TIME n=1 sum=1
                         | a [first,first+20) 0 ON_TIME n=1 sum=1
                         | a [last-19,last) 0 ON_TIME n=1 sum=2
                         | a [last-9,last) 0 ON_TIME n=1 sum=2
        ",
    );
}

#[test]
fn sessions_of_the_last_microseconds_are_one() {
    tell(
        "session 10, lateness 5",
        "
        afirst=1 afirst+9=2  |
        alast-15=1 alast-6=2 |
        alast=4              | open 2
        Wfirst+19            | a [first,first+19) 0 ON_TIME n=2 sum=3
        Wlast                | a [last-15,last) 0 ON_TIME n=3 sum=7
                             | open 1
        alast=8              | a [last-15,last) 1 LATE n=4 sum=15
        Wend                 | open 0
        ",
    );
}

#[test]
fn windows_of_a_microsecond() {
    tell(
        "fixed 1, lateness 1",
        "
        a0=1 a1=2 a-1=4 |
        W0              | a [-1,0) 0 ON_TIME n=1 sum=4
        a-1=8           | a [-1,0) 1 LATE n=2 sum=12
        W1              | a [0,1) 0 ON_TIME n=1 sum=1
        a-1=8           | missed a [-1,0)
        W2              | a [1,2) 0 ON_TIME n=1 sum=2
        ",
    );
    tell(
        "session 1",
        "
        a0=1 a1=2 a0=4 | open 2
        Wend           | a [0,1) 0 ON_TIME n=2 sum=5
                       | a [1,2) 0 ON_TIME n=1 sum=2
        ",
    );
    tell(
        "sliding 3 every 1",
        "
        a0=1 |
        W2   | a [-2,1) 0 ON_TIME n=1 sum=1
             | a [-1,2) 0 ON_TIME n=1 sum=1
        W3   | a [0,3) 0 ON_TIME n=1 sum=1
        ",
    );
}

/// A pane that would wait until behind the end of time waits until the window expires.
#[test]
fn panes_that_wait_for_a_year() {
    tell(
        "fixed 10, lateness 31622400000000, early 31622400000000, late 31622400000000",
        "
        Plast-31622400000000 a3=1 |
        Plast-1                   |
        Plast                     | a [0,10) 0 EARLY n=1 sum=1
        a3=2                      |
        W10                       | a [0,10) 1 ON_TIME n=2 sum=3
        a3=4 W31622400000009      | open 1
        W31622400000010           | a [0,10) 2 LATE n=3 sum=7
                                  | open 0
        ",
    );
}
