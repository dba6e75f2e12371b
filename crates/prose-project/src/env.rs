//! `.prose/.env` and the process's environment.

use std::fmt;
use std::path::Path;

use indexmap::IndexMap;
use prose_model::backend::Variables;

/// Variables by name: those of `.prose/.env` count before the process's own, as upstream has it for its database URL.
#[derive(Clone, Default)]
pub struct Environment {
    file: IndexMap<String, String>,
    process: IndexMap<String, String>,
}

/// Shows names only: values may be secret.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("file", &self.file.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl Environment {
    /// The environment of this process and of `{root}/.prose/.env`, which need not exist.
    pub fn load(root: &Path) -> std::io::Result<Environment> {
        let file = match std::fs::read_to_string(root.join(".prose").join(".env")) {
            Ok(text) => parse(&text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => IndexMap::new(),
            Err(error) => return Err(error),
        };
        // Variables that aren't text can't be what we look for.
        let process = std::env::vars_os()
            .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)));
        Ok(Environment {
            file,
            process: process.collect(),
        })
    }

    /// An environment of the given variables.
    pub fn of(file: &[(&str, &str)], process: &[(&str, &str)]) -> Environment {
        let map = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect()
        };
        Environment {
            file: map(file),
            process: map(process),
        }
    }

    /// A variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        [&self.file, &self.process]
            .into_iter()
            .filter_map(|map| map.get(name))
            .map(String::as_str)
            .find(|value| !value.is_empty())
    }

    /// The same as plain data.
    pub fn variables(&self) -> Variables {
        let map = |map: &IndexMap<String, String>| map.clone().into_iter().collect();
        Variables::new(map(&self.process), map(&self.file))
    }

    /// All values of `.prose/.env`, to be kept out of whatever is shown or stored.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.file
            .values()
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }
}

/// `KEY=value` lines; `#` lines, `export ` and quotes around a value are understood, anything else is passed over.
fn parse(text: &str) -> IndexMap<String, String> {
    let mut variables = IndexMap::new();
    for line in text.lines() {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        if line.starts_with('#') {
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            continue;
        };
        let value = value.trim();
        let quoted = ['"', '\'']
            .into_iter()
            .find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
        variables.insert(key.trim().to_owned(), quoted.unwrap_or(value).to_owned());
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_people_write_them() {
        let variables = parse(
            "# note\nA=1\r\nexport B = \"two words\"\nC='x=y'\nD=\n\nnonsense\nURL=postgres://u:p@h/d?a=b#c\n",
        );
        let pairs: Vec<(&str, &str)> = variables
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        assert_eq!(
            pairs,
            [
                ("A", "1"),
                ("B", "two words"),
                ("C", "x=y"),
                ("D", ""),
                ("URL", "postgres://u:p@h/d?a=b#c")
            ]
        );
    }

    #[test]
    fn the_file_comes_before_the_process() {
        let environment = Environment::of(
            &[("A", "file"), ("B", "")],
            &[("A", "process"), ("B", "b"), ("C", "c")],
        );
        assert_eq!(environment.get("A"), Some("file"));
        assert_eq!(environment.get("B"), Some("b"));
        assert_eq!(environment.get("C"), Some("c"));
        assert_eq!(environment.get("D"), None);
        assert_eq!(environment.secrets().collect::<Vec<_>>(), ["file"]);
        assert!(
            !format!("{environment:?}").contains("process"),
            "values are not shown"
        );
    }

    #[test]
    fn a_missing_file_is_no_error() {
        let dir = tempfile::tempdir().unwrap();
        Environment::load(dir.path()).unwrap();
        std::fs::create_dir(dir.path().join(".prose")).unwrap();
        std::fs::write(dir.path().join(".prose/.env"), "A_NAME_OF_OURS=7\n").unwrap();
        assert_eq!(
            Environment::load(dir.path()).unwrap().get("A_NAME_OF_OURS"),
            Some("7")
        );
    }
}
