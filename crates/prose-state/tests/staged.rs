//! What a session left in its staging folder: only text of its own is taken, and only what may be stored of it.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use prose_state::{Hide, ValueStore, read_staged, read_staged_text};

/// Hides `secret`, wherever the pieces are cut.
#[derive(Default)]
struct Secret(String);

impl Hide for Secret {
    fn push(&mut self, piece: &str) -> String {
        let text = std::mem::take(&mut self.0) + piece;
        let text = text.replace("secret", "[hidden]");
        let open = (1.."secret".len())
            .rev()
            .find(|len| text.ends_with(&"secret"[..*len]))
            .unwrap_or(0);
        let (shown, open) = text.split_at(text.len() - open);
        self.0 = open.to_owned();
        shown.to_owned()
    }
    fn finish(&mut self) -> String {
        std::mem::take(&mut self.0)
    }
}

struct Place {
    dir: tempfile::TempDir,
    values: ValueStore,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("staging")).unwrap();
        std::fs::write(dir.path().join("other.md"), "of the user").unwrap();
        let values = ValueStore::open(&dir.path().join("values")).unwrap();
        Place { dir, values }
    }
    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
    fn read(&self, path: &Path) -> Result<Option<(String, String)>, String> {
        match read_staged(path, &self.values, &mut Secret::default()) {
            Ok(None) => Ok(None),
            Ok(Some((text, summary))) => Ok(Some((self.values.materialize(&text).unwrap(), summary))),
            Err(error) => Err(error.to_string()),
        }
    }
}

#[test]
fn what_must_not_be_stored_is_hidden_at_any_length_and_the_file_stays() {
    let place = Place::new();
    let path = place.at("staging/binding.md");
    let line = "a secret in a line, and the next\n";
    for lines in [1, 100, 100_000] {
        let written = format!("# x\n\nkind: let\n\n---\n\n{}\n\n", line.repeat(lines));
        std::fs::write(&path, &written).unwrap();
        let (text, summary) = place.read(&path).unwrap().unwrap();
        assert!(text == line.replace("secret", "[hidden]").repeat(lines).trim_end());
        assert_eq!(summary, "a [hidden] in a line, and the next");
        assert!(std::fs::read_to_string(&path).unwrap() == written);
    }
    std::fs::write(&path, " \n").unwrap();
    assert_eq!(place.read(&path), Ok(None));
}

#[cfg(unix)]
#[test]
fn only_a_file_of_its_own_is_taken() {
    let place = Place::new();
    let other = place.at("other.md");
    let symbolic = place.at("staging/symbolic.md");
    std::os::unix::fs::symlink(&other, &symbolic).unwrap();
    let hard = place.at("staging/hard.md");
    std::fs::hard_link(&other, &hard).unwrap();
    let folder = place.at("values");
    std::fs::write(place.at("values/linked.md"), "of the user").unwrap();
    std::os::unix::fs::symlink(place.at("values"), place.at("staging/linked")).unwrap();
    let linked = place.at("staging/linked/linked.md");
    let zero = place.at("staging/zero.md");
    std::os::unix::fs::symlink("/dev/zero", &zero).unwrap();
    // Nobody writes to it: whoever opens it as usual waits for ever.
    let pipe = place.at("staging/pipe.md");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let is_link = "it is a link; a session has to write the text itself";
    for (path, why) in [
        (&symbolic, is_link),
        (&hard, is_link),
        (&linked, is_link),
        (&zero, is_link),
        (&pipe, "it is no regular file"),
        (&folder, "it is no regular file"),
    ] {
        let error = place.read(path).unwrap_err();
        assert!(error.ends_with(why), "{error}");
        let error = read_staged_text(path).unwrap_err().to_string();
        assert!(error.ends_with(why), "{error}");
    }
}

#[test]
fn no_text_fills_the_memory_or_the_disk() {
    let place = Place::new();
    let path = place.at("staging/binding.md");
    // Holes take no space.
    let file = std::fs::File::create(&path).unwrap();
    for (len, taken) in [(16 << 20, true), ((16 << 20) + 1, false)] {
        file.set_len(len).unwrap();
        assert_eq!(read_staged_text(&path).is_ok(), taken);
    }
    file.set_len(1 << 40).unwrap();
    let error = place.read(&path).unwrap_err();
    assert!(error.ends_with("it is longer than 1024 MiB"), "{error}");
    assert_eq!(read_staged_text(&place.at("staging/none.md")).unwrap(), None);
}
