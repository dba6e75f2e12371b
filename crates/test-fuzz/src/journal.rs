//! The journal of a run: any bytes give the records that are whole, or an error with the line and the byte of the first that
//! can't be trusted.

use std::path::Path;

use prose_state::{JournalContent, StateError, decode_journal, encode_record};
use test_programs::Numbers;

pub(crate) fn check(input: &[u8]) {
    let path = Path::new("journal.jsonl");
    match decode_journal(path, input) {
        Ok(content) => whole(path, input, &content),
        Err(StateError::JournalDamaged { line, offset, .. }) => {
            let Some((before, rest)) = split(input, offset) else {
                panic!("damage at byte {offset} of {}", input.len());
            };
            assert!(!rest.is_empty(), "damage where nothing is");
            assert!(
                before.is_empty() || before.ends_with(b"\n"),
                "damage in the middle of a line"
            );
            let lines = before.iter().filter(|byte| **byte == b'\n').count() as u64;
            assert_eq!(line, lines + 1, "the line of byte {offset}");
            let intact =
                decode_journal(path, before).unwrap_or_else(|error| panic!("before the damage: {error}"));
            assert_eq!(
                (intact.records.len() as u64, intact.torn, intact.intact),
                (lines, None, offset)
            );
        }
        Err(error) => panic!("an error of another kind: {error}"),
    }
}

/// What is read is numbered, covers the file up to its torn end, and is the same once more without that end.
fn whole(path: &Path, input: &[u8], content: &JournalContent) {
    let end = content.intact + content.torn.map_or(0, |torn| torn.len);
    assert_eq!(end, input.len() as u64, "the parts of the file");
    if let Some(torn) = content.torn {
        assert_eq!(torn.offset, content.intact);
        assert_eq!(torn.line, content.records.len() as u64 + 1);
        assert!(torn.len > 0, "nothing is torn");
    }
    let Some((intact, _)) = split(input, content.intact) else {
        panic!("{} intact bytes of {}", content.intact, input.len());
    };
    for (at, record) in content.records.iter().enumerate() {
        assert_eq!(record.seq, at as u64, "numbers of records");
    }
    let again = decode_journal(path, intact).unwrap_or_else(|error| panic!("the intact part: {error}"));
    assert_eq!(again.torn, None);
    assert_eq!(again.records, content.records);
    // A cut anywhere in the last record leaves those before it.
    if let Some(last) = content.records.len().checked_sub(1) {
        let cut = decode_journal(path, &intact[..intact.len() - 1])
            .unwrap_or_else(|error| panic!("without the last byte: {error}"));
        assert_eq!(cut.records, content.records[..last]);
        assert!(cut.torn.is_some());
    }
}

fn split(input: &[u8], at: u64) -> Option<(&[u8], &[u8])> {
    input.split_at_checked(usize::try_from(at).ok()?)
}

/// Changes lines and bytes of a journal. Half of the lines get the checksum that fits, so that what comes behind it is tried.
pub(crate) fn change(input: &str, numbers: &mut Numbers, most: usize) -> String {
    let mut lines: Vec<String> = input.split_inclusive('\n').map(str::to_owned).collect();
    match numbers.below(7) {
        0 if !lines.is_empty() => {
            lines.remove(numbers.below(lines.len()));
        }
        1 if !lines.is_empty() => {
            let line = lines[numbers.below(lines.len())].clone();
            lines.insert(numbers.below(lines.len() + 1), line);
        }
        2 if !lines.is_empty() => {
            let at = numbers.below(lines.len());
            let line = &mut lines[at];
            let cut = numbers.below(line.len() + 1);
            if line.is_char_boundary(cut) {
                line.truncate(cut);
            }
        }
        3 | 4 if !lines.is_empty() => {
            let at = numbers.below(lines.len());
            let line = &mut lines[at];
            let pieces = [
                "\"",
                "{",
                "}",
                "[",
                "0",
                "9",
                "null",
                "\\",
                ",",
                "é",
                "\u{0}",
                "\"crc\":\"",
                "\r",
            ];
            let to = numbers.below(line.len() + 1);
            if line.is_char_boundary(to) {
                let piece: &&str = numbers.pick(&pieces);
                line.insert_str(to, piece);
            }
            if numbers.below(2) == 0 {
                *line = with_checksum(line);
            }
        }
        _ => {
            let seq = lines.len() as u64;
            let bodies = [
                r#""t":"lease","lease":1,"pid":42"#,
                r#""t":"cancel","what":"run""#,
                r#""t":"end","status":"completed""#,
                r#""t":"input","name":"x","value":{"text":"a"}"#,
            ];
            let body: &&str = numbers.pick(&bodies);
            let text = format!(r#"{{"v":1,"seq":{seq},"ts":"2026-01-15T14:30:52.345Z",{body}}}"#);
            let line = serde_json::from_str(&text)
                .ok()
                .and_then(|record| encode_record(&record).ok())
                .and_then(|line| String::from_utf8(line).ok());
            lines.push(line.unwrap_or_else(|| text + "\n"));
        }
    }
    let mut out = lines.concat();
    let mut end = most.min(out.len());
    while !out.is_char_boundary(end) {
        end -= 1;
    }
    out.truncate(end);
    out
}

/// The line with the checksum of what it holds now, if it has a place for one.
fn with_checksum(line: &str) -> String {
    const MEMBER: &str = "\"crc\":\"";
    let whole = |line: &str| -> Option<String> {
        let at = line.find(MEMBER)?;
        let behind = line.get(at + MEMBER.len() + 10..)?;
        let plain = format!("{}{}", &line[..at], behind.trim_end_matches('\n'));
        let crc = crc32c::crc32c(plain.as_bytes());
        Some(format!("{}{MEMBER}{crc:08x}\",{behind}", &line[..at]))
    };
    whole(line).unwrap_or_else(|| line.to_owned())
}
