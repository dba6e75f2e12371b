//! Small things of the text forms: colours, columns, sizes, times.

use crossterm::style::Stylize;
use unicode_width::UnicodeWidthStr;

/// Colours, or none.
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    on: bool,
}

macro_rules! colours {
    ($($(#[$doc:meta])* $name:ident = $style:ident;)+) => {
        $($(#[$doc])* pub fn $name(&self, text: &str) -> String {
            if self.on { text.$style().to_string() } else { text.to_owned() }
        })+
    };
}

impl Paint {
    /// With or without colours.
    pub fn new(on: bool) -> Paint {
        Paint { on }
    }

    colours! {
        /// For what is well.
        green = green;
        /// For what is wrong.
        red = red;
        /// For what waits.
        yellow = yellow;
        /// For what goes on.
        cyan = cyan;
        /// For what matters less.
        dim = dark_grey;
        /// For headings.
        bold = bold;
    }

    /// The word for how a run stands, in its colour.
    pub fn status(&self, word: &str) -> String {
        match word.split_whitespace().next().unwrap_or_default() {
            "completed" => self.green(word),
            "failed" | "unreadable" => self.red(word),
            "waiting" | "interrupted" => self.yellow(word),
            "running" => self.cyan(word),
            _ => self.dim(word),
        }
    }
}

/// A table with aligned columns.
#[derive(Debug)]
pub struct Columns<const N: usize> {
    rows: Vec<[String; N]>,
}

impl<const N: usize> Columns<N> {
    /// With a heading.
    pub fn new(heads: [&str; N]) -> Columns<N> {
        Columns {
            rows: vec![heads.map(str::to_owned)],
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    /// The table's text. The cells of one column, from 0, are painted.
    pub fn render(&self, paint: &Paint, painted: usize, with: impl Fn(&str) -> String) -> String {
        let mut widths = [0; N];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.width().max(*width);
            }
        }
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (at, (cell, width)) in row.iter().zip(widths).enumerate() {
                let pad = if at + 1 == N { 0 } else { width - cell.width() + 2 };
                let cell = match number {
                    0 => paint.dim(cell),
                    _ if at == painted => with(cell),
                    _ => cell.clone(),
                };
                line.push_str(&cell);
                line.push_str(&" ".repeat(pad));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// A size in bytes, for people.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

/// How long ago something was, both in milliseconds since the Unix epoch.
pub fn when(at: i64, now: i64) -> String {
    let seconds = now.saturating_sub(at).max(0) / 1000;
    match seconds {
        0..60 => "just now".to_owned(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut columns = Columns::new(["A", "B"]);
        columns.row(["漢字".to_owned(), "x".to_owned()]);
        columns.row(["a".to_owned(), String::new()]);
        let text = columns.render(&Paint::new(false), 1, str::to_owned);
        assert_eq!(text, "A     B\n漢字  x\na\n");
    }

    #[test]
    fn sizes_and_times() {
        assert_eq!((size(12), size(2048)), ("12 B".to_owned(), "2.0 KiB".to_owned()));
        assert_eq!(when(0, 59_000), "just now");
        assert_eq!(when(0, 7_200_000), "2 h ago");
        assert_eq!(when(5, 0), "just now");
    }
}
