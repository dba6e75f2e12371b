//! The journal under damage: whatever the end of the file looks like, what was whole is read and nothing else.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{issued, outcome};
use proptest::prelude::*;
use prose_model::{CancelWhat, JournalRecord, RecordBody, RunStatus};
use prose_state::{Damage, Journal, ManualClock, StateError, read_journal};

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(1_768_487_452_345))
}

fn path(dir: &tempfile::TempDir) -> PathBuf {
    dir.path().join("journal.jsonl")
}

/// Writes the records to a new journal and returns the file's bytes.
fn written(path: &Path, bodies: &[RecordBody]) -> Vec<u8> {
    let _ = fs::remove_file(path);
    let journal = Journal::create(path, clock()).unwrap();
    journal.append_all_durable(bodies.iter().cloned()).unwrap();
    fs::read(path).unwrap()
}

fn bodies(content: &[JournalRecord]) -> Vec<RecordBody> {
    content.iter().map(|record| record.body.clone()).collect()
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        ".{0,30}",
        Just("\"crc\":\"00000000\",".to_owned()),
        Just("a\nb\r\n\u{2028}".to_owned())
    ]
}

fn value() -> impl Strategy<Value = prose_model::Value> {
    use prose_model::Value;
    let number = prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number.prop_map(Value::Number),
        text().prop_map(Value::text),
    ];
    leaf.prop_recursive(4, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::list),
            prop::collection::vec((text(), inner), 0..3).prop_map(Value::record),
        ]
    })
}

fn body() -> impl Strategy<Value = RecordBody> {
    prop_oneof![
        (text(), 0u64..9).prop_map(|(id, order)| issued(&id, order)),
        (text(), value()).prop_map(|(id, value)| outcome(&id, 1, value)),
        (text(), value()).prop_map(|(name, value)| RecordBody::Input {
            name: name.into(),
            value
        }),
        (1u64..9, any::<u32>()).prop_map(|(lease, pid)| RecordBody::Lease { lease, pid }),
        Just(RecordBody::Cancel {
            what: CancelWhat::Run
        }),
        Just(RecordBody::End {
            status: RunStatus::Completed
        }),
    ]
}

#[test]
fn a_line_is_as_documented() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = written(&path(&dir), &[RecordBody::Lease { lease: 1, pid: 42 }]);
    expect_test::expect![[r#"
        {"v":1,"seq":0,"ts":"2026-01-15T14:30:52.345Z","crc":"4b03d775","t":"lease","lease":1,"pid":42}
    "#]]
    .assert_eq(std::str::from_utf8(&bytes).unwrap());
    let plain = r#"{"v":1,"seq":0,"ts":"2026-01-15T14:30:52.345Z","t":"lease","lease":1,"pid":42}"#;
    let crc = format!("\"crc\":\"{:08x}\"", crc32c::crc32c(plain.as_bytes()));
    assert!(std::str::from_utf8(&bytes).unwrap().contains(&crc));
}

#[test]
fn appending_goes_on_after_a_torn_record() {
    let dir = tempfile::tempdir().unwrap();
    let path = path(&dir);
    let bytes = written(&path, &[issued("a", 0), issued("b", 1)]);
    fs::write(&path, &bytes[..bytes.len() - 7]).unwrap();
    let (journal, content) = Journal::open(&path, clock()).unwrap();
    let torn = content.torn.unwrap();
    assert_eq!(
        (torn.line, torn.offset, torn.offset + torn.len),
        (2, content.intact, bytes.len() as u64 - 7)
    );
    assert_eq!(journal.append_durable(issued("c", 1)).unwrap(), 1);
    let content = read_journal(&path).unwrap();
    assert_eq!(bodies(&content.records), [issued("a", 0), issued("c", 1)]);
    assert_eq!(content.torn, None);
}

#[test]
fn reading_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = path(&dir);
    let bytes = written(&path, &[issued("a", 0)]);
    fs::write(&path, &bytes[..20]).unwrap();
    assert!(read_journal(&path).unwrap().torn.is_some());
    assert_eq!(fs::read(&path).unwrap(), &bytes[..20]);
}

#[test]
fn damage_before_the_end_names_line_and_byte() {
    let dir = tempfile::tempdir().unwrap();
    let path = path(&dir);
    let mut bytes = written(&path, &[issued("a", 0), issued("b", 1), issued("c", 2)]);
    let second = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    bytes[second + 30] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let error = Journal::open(&path, clock()).err().unwrap();
    assert!(
        error
            .to_string()
            .contains(&format!("line 2, at byte {second}: the record is damaged")),
        "{error}"
    );
    assert_eq!(
        fs::read(&path).unwrap(),
        bytes,
        "a damaged journal is left as it is"
    );
}

#[test]
fn a_missing_or_repeated_record_is_noticed_also_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = path(&dir);
    let bytes = written(&path, &[issued("a", 0), issued("b", 1), issued("c", 2)]);
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    for (kept, expected, found) in [(vec![0, 2], 1, 2), (vec![1], 0, 1), (vec![0, 1, 2, 2], 3, 2)] {
        let content: Vec<u8> = kept.iter().flat_map(|line| lines[*line].to_vec()).collect();
        fs::write(&path, content).unwrap();
        let Err(StateError::JournalDamaged { damage, .. }) = read_journal(&path) else {
            panic!("{kept:?}")
        };
        assert_eq!(damage, Damage::Sequence { expected, found });
    }
}

#[test]
fn a_newer_format_is_refused_not_cut() {
    let dir = tempfile::tempdir().unwrap();
    let path = path(&dir);
    let line = |plain: &str| {
        let crc = crc32c::crc32c(plain.as_bytes());
        plain.replacen("\"t\":", &format!("\"crc\":\"{crc:08x}\",\"t\":"), 1) + "\n"
    };
    fs::write(
        &path,
        line(r#"{"v":2,"seq":0,"ts":"x","t":"lease","lease":1,"pid":42}"#),
    )
    .unwrap();
    let error = read_journal(&path).unwrap_err().to_string();
    assert!(
        error.contains("journal format 2 was written by a newer version"),
        "{error}"
    );
    fs::write(&path, line(r#"{"v":1,"seq":0,"ts":"x","t":"moon","phase":1}"#)).unwrap();
    let error = read_journal(&path).unwrap_err().to_string();
    assert!(error.contains("this version of prose can't read it"), "{error}");
    fs::write(
        &path,
        line(r#"{"v":1,"seq":0,"ts":"x","t":"lease","lease":1,"pid":42}"#),
    )
    .unwrap();
    assert_eq!(read_journal(&path).unwrap().records.len(), 1);
}

#[test]
fn what_would_not_read_back_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = path(&dir);
    let journal = Journal::create(&path, clock()).unwrap();
    let deep = (0..200).fold(prose_model::Value::Null, |inner, _| {
        prose_model::Value::list(vec![inner])
    });
    for value in [
        prose_model::Value::Number(f64::NAN),
        prose_model::Value::Number(f64::INFINITY),
        deep,
    ] {
        let error = journal.append_durable(outcome("a", 1, value)).unwrap_err();
        assert!(matches!(error, StateError::Unserializable { .. }), "{error}");
    }
    journal.append_durable(issued("a", 0)).unwrap();
    assert_eq!(read_journal(&path).unwrap().records.len(), 1);
}

#[test]
fn threads_share_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    let path = path(&dir);
    let journal = Journal::create(&path, clock()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let journal = &journal;
            scope.spawn(move || {
                for n in 0..10 {
                    let seq = journal
                        .append_durable(issued(&format!("{thread}/{n}"), n))
                        .unwrap();
                    // What was acknowledged is in the file under the number given.
                    let records = read_journal(journal.path()).unwrap().records;
                    assert_eq!(records[seq as usize].body, issued(&format!("{thread}/{n}"), n));
                }
            });
        }
    });
    assert_eq!(journal.len(), 40);
    assert_eq!(read_journal(&path).unwrap().records.len(), 40);
}

/// What is left can be gone on with: nothing is written behind a cut.
#[test]
fn a_journal_that_is_cut_meanwhile_takes_no_more_records() {
    let dir = tempfile::tempdir().unwrap();
    let path = path(&dir);
    let journal = Journal::create(&path, clock()).unwrap();
    journal
        .append_all_durable([issued("a", 0), issued("b", 1)])
        .unwrap();
    let cut = fs::metadata(&path).unwrap().len() - 10;
    fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(cut)
        .unwrap();
    let error = journal.append(issued("c", 2)).unwrap_err();
    assert!(
        matches!(error, StateError::JournalAltered { found, .. } if found == cut),
        "{error}"
    );
    assert!(journal.append(issued("c", 2)).is_err());
    assert_eq!(fs::metadata(&path).unwrap().len(), cut);
    drop(journal);
    let (_, content) = Journal::open(&path, clock()).unwrap();
    assert_eq!(bodies(&content.records), [issued("a", 0)]);
}

#[cfg(unix)]
#[test]
fn a_journal_has_one_writer() {
    let dir = tempfile::tempdir().unwrap();
    let path = path(&dir);
    let journal = Journal::create(&path, clock()).unwrap();
    journal.append_durable(issued("a", 0)).unwrap();
    let error = Journal::open(&path, clock()).err().unwrap();
    assert!(matches!(error, StateError::Locked { .. }), "{error}");
    // Whoever reads needs no lock.
    assert_eq!(read_journal(&path).unwrap().records.len(), 1);
    drop(journal);
    assert!(Journal::open(&path, clock()).is_ok());
}

#[test]
fn a_journal_is_not_created_over_another() {
    let dir = tempfile::tempdir().unwrap();
    let path = path(&dir);
    written(&path, &[issued("a", 0)]);
    assert!(Journal::create(&path, clock()).is_err());
    assert_eq!(read_journal(&path).unwrap().records.len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn records_round_trip(records in prop::collection::vec(body(), 0..6)) {
        let dir = tempfile::tempdir().unwrap();
        written(&path(&dir), &records);
        let content = read_journal(&path(&dir)).unwrap();
        prop_assert_eq!(bodies(&content.records), records);
        prop_assert_eq!(content.torn, None);
    }

    /// Cut at every byte, the journal reopens with the records that are whole.
    #[test]
    fn any_cut_leaves_a_prefix(records in prop::collection::vec(body(), 1..4)) {
        let dir = tempfile::tempdir().unwrap();
        let path = path(&dir);
        let bytes = written(&path, &records);
        for cut in 0..=bytes.len() {
            fs::write(&path, &bytes[..cut]).unwrap();
            let whole = bytes[..cut].iter().filter(|byte| **byte == b'\n').count();
            let content = read_journal(&path).unwrap();
            prop_assert_eq!(bodies(&content.records), &records[..whole]);
            prop_assert_eq!(content.torn.is_some(), content.intact < cut as u64);
            // Each opening waits for the disk.
            if cut % 16 != 0 {
                continue;
            }
            let (journal, _) = Journal::open(&path, clock()).unwrap();
            prop_assert_eq!(fs::metadata(&path).unwrap().len(), content.intact);
            prop_assert_eq!(journal.len(), whole as u64);
        }
    }

    /// One changed byte anywhere is an error that names the record, or, in the last record, a torn tail.
    #[test]
    fn any_changed_byte_is_noticed(
        records in prop::collection::vec(body(), 1..4),
        change in 1u8..=255,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = path(&dir);
        let bytes = written(&path, &records);
        let ends: Vec<usize> =
            bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= change;
            fs::write(&path, &damaged).unwrap();
            let hit = ends.iter().filter(|end| **end <= at).count();
            let start = if hit == 0 { 0 } else { ends[hit - 1] };
            match read_journal(&path) {
                Ok(content) => {
                    // A changed line end joins the last two lines, so the torn part may begin one record earlier.
                    let torn = content.torn.expect("a changed byte can't leave the journal whole");
                    prop_assert!(torn.offset as usize <= at && hit + 2 >= records.len());
                    prop_assert_eq!(bodies(&content.records), &records[..torn.line as usize - 1]);
                }
                Err(StateError::JournalDamaged { line, offset, .. }) => {
                    prop_assert_eq!((line, offset as usize), (hit as u64 + 1, start));
                }
                Err(error) => prop_assert!(false, "{error}"),
            }
        }
    }

    /// Lines left out, repeated or in another order, and then perhaps cut: an error that names line and byte, or a part of
    /// what was written.
    #[test]
    fn lines_that_were_moved_are_noticed(
        records in prop::collection::vec(body(), 2..6),
        order in prop::collection::vec(any::<prop::sample::Index>(), 1..9),
        cut in 0usize..40,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = path(&dir);
        let bytes = written(&path, &records);
        let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        let order: Vec<usize> = order.iter().map(|index| index.index(lines.len())).collect();
        let mut moved: Vec<u8> = order.iter().flat_map(|line| lines[*line].to_vec()).collect();
        moved.truncate(moved.len().saturating_sub(cut));
        fs::write(&path, &moved).unwrap();
        let intact = order.iter().enumerate().take_while(|(at, line)| at == *line).count();
        match read_journal(&path) {
            Ok(content) => {
                prop_assert!(content.records.len() <= intact);
                prop_assert_eq!(bodies(&content.records), &records[..content.records.len()]);
            }
            Err(StateError::JournalDamaged { line, offset, damage, .. }) => {
                prop_assert!(matches!(damage, Damage::Sequence { .. }), "{damage:?}");
                prop_assert_eq!(line as usize, intact + 1);
                let start: usize = order[..intact].iter().map(|line| lines[*line].len()).sum();
                prop_assert_eq!(offset as usize, start);
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    }

    /// Any damage at all, also several kinds at once: never a panic, never a record that was not written there.
    #[test]
    fn whatever_is_done_to_it_no_record_is_made_up(
        records in prop::collection::vec(body(), 1..6),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0u8..4, any::<u8>(), 0usize..60), 1..6),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = path(&dir);
        let mut bytes = written(&path, &records);
        for (at, kind, byte, len) in changes {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            let end = (at + len).min(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 => drop(bytes.drain(at..end)),
                _ => {
                    let piece = bytes[at..end].to_vec();
                    bytes.splice(end..end, piece);
                }
            }
        }
        fs::write(&path, &bytes).unwrap();
        match read_journal(&path) {
            Ok(content) => {
                let count = content.records.len();
                prop_assert!(count <= records.len());
                prop_assert_eq!(bodies(&content.records), &records[..count]);
                prop_assert_eq!(content.intact + content.torn.map_or(0, |torn| torn.len), bytes.len() as u64);
                prop_assert_eq!(content.torn.map_or(content.intact, |torn| torn.offset), content.intact);
            }
            Err(StateError::JournalDamaged { line, offset, .. }) => {
                let before = bytes[..offset as usize].iter().filter(|byte| **byte == b'\n').count();
                prop_assert_eq!(before as u64 + 1, line);
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn random_bytes_are_never_taken_for_records(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let dir = tempfile::tempdir().unwrap();
        fs::write(path(&dir), &bytes).unwrap();
        if let Ok(content) = read_journal(&path(&dir)) {
            prop_assert!(content.records.is_empty());
        }
    }
}
