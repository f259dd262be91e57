use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

use super::*;

/// A directory with what was asked for.
fn made(seed: u64, lines: u64, files: u64) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    write(&Request { seed, shape: Shape::of(lines), files }, directory.path()).unwrap();
    directory
}

fn text(directory: &tempfile::TempDir, file: &str) -> String {
    std::fs::read_to_string(directory.path().join(file)).unwrap()
}

/// The lines of all files without their headers.
fn lines(directory: &tempfile::TempDir, files: u64) -> Vec<String> {
    let mut all = Vec::new();
    for file in 1..=files {
        let text = text(directory, &format!("orders-{file}.csv"));
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some(HEADER));
        all.extend(lines.map(str::to_owned));
    }
    all
}

/// The fields of a line as a reader of RFC 4180 has them; none of a line that is no record.
fn fields(line: &str) -> Option<Vec<String>> {
    let (mut fields, mut rest) = (Vec::new(), line);
    loop {
        let (field, behind) = match rest.strip_prefix('"') {
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                (rest[..end].to_owned(), &rest[end..])
            }
            Some(inside) => {
                let (mut field, mut inside) = (String::new(), inside);
                loop {
                    let end = inside.find('"')?;
                    field.push_str(&inside[..end]);
                    inside = &inside[end + 1..];
                    let Some(more) = inside.strip_prefix('"') else { break };
                    field.push('"');
                    inside = more;
                }
                (field, inside)
            }
        };
        fields.push(field);
        match behind.strip_prefix(',') {
            Some(next) => rest = next,
            None => return behind.is_empty().then_some(fields),
        }
    }
}

#[test]
fn the_same_seed_makes_the_same_bytes() {
    let directory = made(1, 40_150, 1);
    let digest = |file: &str| {
        let digest = Sha256::digest(text(&directory, file));
        digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let digests = ["orders-1.csv", "expected/rejected.csv", "expected/counts.json"].map(digest);
    assert_eq!(
        digests,
        ["9fac91c23ee75a0c", "81876da45a9c4d24", "57bb24ddd4f609a0"],
        "a file that is generated must not change: rows are compared with it"
    );
    assert_ne!(text(&made(2, 400, 1), "orders-1.csv"), text(&made(1, 400, 1), "orders-1.csv"));
}

#[test]
fn the_files_hold_what_was_said_of_them() {
    for (seed, count, files) in [(1, 40_150, 1), (2, 4_015, 3), (3, 401, 7), (4, 1, 2), (5, 0, 1)] {
        let directory = made(seed, count, files);
        let lines = lines(&directory, files);
        let shape = Shape::of(count);
        assert_eq!(lines.len() as u64, count);

        let distinct: BTreeSet<&String> = lines.iter().collect();
        assert_eq!((lines.len() - distinct.len()) as u64, shape.duplicates);

        let rejected = text(&directory, "expected/rejected.csv");
        assert_eq!(rejected.lines().count() as u64, shape.rejected);
        let rejected: BTreeSet<&str> = rejected.lines().collect();
        let (bad, good): (Vec<&String>, Vec<&String>) =
            distinct.into_iter().partition(|line| rejected.contains(line.as_str()));
        assert_eq!(bad.len() as u64, shape.rejected);

        let mut by_status = BTreeMap::new();
        for line in good {
            let fields = fields(line).expect(line);
            assert_eq!(fields.len(), 7, "{line}");
            *by_status.entry(fields[4].trim().to_lowercase()).or_default() += 1;
        }
        let expected = STATUSES.map(str::to_owned).into_iter().zip(shape.by_status).filter(|(_, orders)| *orders > 0);
        assert_eq!(by_status, expected.collect::<BTreeMap<String, u64>>());
    }
}

#[test]
fn files_have_as_many_lines_each_but_for_one() {
    let directory = made(1, 10, 3);
    let count = |file: u64| text(&directory, &format!("orders-{file}.csv")).lines().count();
    assert_eq!([1, 2, 3].map(count), [5, 4, 4], "with a header each");
    assert!(!directory.path().join("orders-4.csv").exists());
}

#[test]
fn blanks_spellings_quotes_and_empty_values_are_all_there() {
    let directory = made(1, 40_150, 1);
    let rejected: BTreeSet<String> = text(&directory, "expected/rejected.csv").lines().map(str::to_owned).collect();
    let mut seen = vec![BTreeSet::new(); 7];
    for line in lines(&directory, 1).iter().filter(|line| !rejected.contains(*line)) {
        for (seen, field) in seen.iter_mut().zip(fields(line).unwrap()) {
            seen.insert(field);
        }
    }
    assert_eq!(seen[4].len(), 12, "{:?}", seen[4]);
    assert!(seen[2].contains("Home, Kitchen") && seen[2].contains("The \"Outlet\""), "{:?}", seen[2]);
    assert!(seen[5].contains("") && seen[5].contains(" eur"), "{:?}", seen[5]);
    assert!(seen[6].contains("") && seen[6].contains("40"), "{:?}", seen[6]);
    for column in [0, 1, 6] {
        assert!(seen[column].iter().any(|id| id.starts_with(' ')) && seen[column].iter().any(|id| id.ends_with(' ')));
    }
}

#[test]
fn every_fault_has_its_line_and_its_stage() {
    let directory = made(1, 40_150, 1);
    let rejected = text(&directory, "expected/rejected.csv");
    let with = |part: &str| rejected.lines().filter(|line| line.contains(part)).count();
    let parts =
        [",unknown,", ",N/A,", ",not a date,", ",returned,", ",gift", ",\"app,", "2026-02-30", "order ", "SUMMER"];
    for part in parts {
        assert!((8..=9).contains(&with(part)), "{part}: {}", with(part));
    }
    let broken = rejected.lines().filter(|line| fields(line).is_none_or(|fields| fields.len() != 7)).count();
    assert_eq!(broken, 24, "a field missing, a field too many, a quote that is never closed");
    let counts = text(&directory, "expected/counts.json");
    let stages = "\"by_stage\": {\"BUSINESS_RULE_VALIDATION\": 9, \"EVENT_TIME_VALIDATION\": 25, \"PARSE_CSV\": 24, \
                  \"SCHEMA_VALIDATION\": 42}";
    assert!(counts.contains(stages), "{counts}");
    assert!(counts.contains("\"accepted\": 39900,") && counts.contains("\"delivered\": 28005,"), "{counts}");
}

#[test]
fn a_quote_that_is_never_closed_is_followed_by_text_behind_the_next_quote() {
    let directory = made(1, 40_150, 1);
    let all = text(&directory, "orders-1.csv");
    let mut found = 0;
    for (at, _) in all.match_indices(",\"app,") {
        let inside = &all[at + 2..];
        let next = inside.find('"').map(|next| &inside[next + 1..]);
        assert!(next.is_none_or(|text| text.starts_with(char::is_alphanumeric)), "{:?}", &inside[..200]);
        found += 1;
    }
    assert_eq!(found, 8);
}

#[test]
fn a_directory_that_holds_something_is_left_alone() {
    let directory = made(1, 10, 1);
    let error = write(&Request { seed: 1, shape: Shape::of(10), files: 1 }, directory.path()).unwrap_err();
    assert!(error.to_string().contains("is not empty"), "{error}");
    let file = directory.path().join("orders-1.csv");
    let error = write(&Request { seed: 1, shape: Shape::of(10), files: 1 }, &file).unwrap_err();
    assert!(error.to_string().contains("cannot create"), "{error}");
}
