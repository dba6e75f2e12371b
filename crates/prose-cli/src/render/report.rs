//! The page of a run: one file that needs no other, no network and no script.
//!
//! Everything that comes from a program, a person or a session goes through [`Page::text`] or [`Page::attribute`], and
//! nothing of it is ever a name, a style or an address. A policy in the page's head forbids scripts besides.

mod graph;

use std::fmt::Write as _;

use indexmap::IndexMap;
use prose_model::Usage;
use prose_runtime::runs::{BindingLine, Line, LineKind, RunReport, Shown};

use super::lines::{duration, one_line};
use super::text::size;

/// So many bars, lines or values are on a page at most; it says so when there are more.
const MOST: usize = 2000;

const STYLE: &str = include_str!("report.css");

/// How every page begins: a file that does may be replaced by another page.
pub const BEGINNING: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"generator\" content=\"prose runs show --report\">\n";

/// The page of a run.
pub fn page(run: &RunReport) -> String {
    let mut page = Page::default();
    page.raw(BEGINNING);
    page.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n");
    page.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
    page.text(&format!("{} · {}", one_line(&run.program, 80), run.id));
    page.raw("</title>\n<style>\n");
    page.raw(STYLE);
    page.raw("</style>\n</head>\n<body>\n");
    head(&mut page, run);
    timeline(&mut page, run);
    tree(&mut page, run);
    graph::graph(&mut page, run);
    verdicts(&mut page, run);
    costs(&mut page, run);
    values(&mut page, run);
    page.raw("<footer>Written by <code>prose runs show --report</code> from the run's journal; everything is in this file.</footer>\n</body>\n</html>\n");
    page.html
}

/// A page that is written. User text gets in by [`Page::text`] and [`Page::attribute`] alone.
#[derive(Debug, Default)]
pub(crate) struct Page {
    html: String,
}

impl Page {
    /// The page's own HTML.
    pub(crate) fn raw(&mut self, html: &str) {
        self.html.push_str(html);
    }

    /// Any text, which stays text.
    pub(crate) fn text(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '&' => self.html.push_str("&amp;"),
                '<' => self.html.push_str("&lt;"),
                '>' => self.html.push_str("&gt;"),
                '"' => self.html.push_str("&quot;"),
                '\'' => self.html.push_str("&#39;"),
                // What HTML forbids even as a reference, and what would turn the text's direction around.
                '\n' | '\t' => self.html.push(c),
                c if c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') => {
                    self.html.push('\u{fffd}');
                }
                c => self.html.push(c),
            }
        }
    }

    /// An attribute with any text as its value.
    pub(crate) fn attribute(&mut self, name: &'static str, value: &str) {
        self.raw(" ");
        self.raw(name);
        self.raw("=\"");
        self.text(value);
        self.raw("\"");
    }

    fn section(&mut self, title: &'static str) {
        self.raw("<h2>");
        self.raw(title);
        self.raw("</h2>\n");
    }

    /// A value's text, with a note where it was cut.
    fn value(&mut self, value: &Shown) {
        self.raw("<pre>");
        // A newline right behind the tag would be dropped.
        self.raw("\n");
        self.text(&value.text);
        self.raw("</pre>\n");
        if value.cut {
            self.raw("<p class=\"soft\">The beginning of ");
            self.text(&size(value.bytes));
            self.raw("; the whole text is in the run's folder.</p>\n");
        }
    }
}

/// The word of a run's or a line's state is a class of the style sheet; nothing else may become one.
fn class(word: &str) -> &'static str {
    const CLASSES: [&str; 10] = [
        "completed",
        "failed",
        "cancelled",
        "waiting",
        "interrupted",
        "running",
        "unreadable",
        "foreign",
        "unfinished",
        "ok",
    ];
    CLASSES
        .into_iter()
        .find(|class| *class == word || (*class == "ok" && word == "done"))
        .unwrap_or("cancelled")
}

fn head(page: &mut Page, run: &RunReport) {
    page.raw("<header><h1>");
    page.text(&run.program);
    page.raw("</h1><span class=\"pill ");
    page.raw(class(&run.status));
    page.raw("\">");
    page.text(&run.status);
    page.raw("</span><span class=\"id\">");
    page.text(&run.id);
    page.raw("</span><label class=\"theme\"><input type=\"checkbox\" id=\"theme\"> other colours</label></header>\n<ul class=\"cards\">");
    let mut card = |title: &'static str, value: String| {
        page.raw("<li><b>");
        page.text(&value);
        page.raw("</b><span>");
        page.raw(title);
        page.raw("</span></li>");
    };
    let took = if run.virtual_time {
        "duration, simulated"
    } else {
        "duration"
    };
    card(took, duration(run.duration_ms));
    card("sessions", format!("{}/{}", run.sessions_done, run.sessions));
    card("tokens in", run.usage.input_tokens.to_string());
    card("tokens out", run.usage.output_tokens.to_string());
    if let Some(cost) = run.usage.cost_usd {
        card("cost", format!("${cost:.4}"));
    }
    card("backend", run.backend.clone());
    if let Some(started) = &run.started {
        card(
            "started, UTC",
            started.get(..19).unwrap_or(started).replace('T', " "),
        );
    }
    page.raw("</ul>\n");
    for problem in &run.problems {
        note(page, "note bad", "Damaged: ", problem);
    }
    if let Some(error) = &run.error {
        let text = format!("{} ({}, at {})", error.message, error.kind, error.statement);
        note(page, "note bad", "Error: ", &text);
    }
    for input in run.inputs.iter().filter(|input| input.value.is_none()) {
        note(
            page,
            "note",
            "Waits for an answer: ",
            &format!("{}: {}", input.name, input.prompt),
        );
    }
    for warning in &run.warnings {
        note(page, "note", "Warning: ", warning);
    }
}

fn note(page: &mut Page, class: &'static str, what: &'static str, text: &str) {
    page.raw("<p class=\"");
    page.raw(class);
    page.raw("\"><b>");
    page.raw(what);
    page.raw("</b>");
    page.text(text);
    page.raw("</p>\n");
}

/// What has a bar: what takes time by itself.
fn takes_time(line: &Line) -> bool {
    matches!(
        line.kind,
        LineKind::Session | LineKind::Judge | LineKind::Input | LineKind::Wait
    )
}

fn timeline(page: &mut Page, run: &RunReport) {
    let bars: Vec<(usize, &Line)> = run
        .tree
        .iter()
        .enumerate()
        .filter(|(_, line)| takes_time(line))
        .collect();
    if bars.is_empty() {
        return;
    }
    let last = bars.iter().filter_map(|(_, line)| line.end_ms).max().unwrap_or(0);
    let whole = run.duration_ms.max(last).max(1);
    page.section("Timeline");
    page.raw("<div class=\"scroll\"><div class=\"time\"><span></span><div class=\"axis\">");
    for tick in 0..=4u64 {
        let at = whole * tick / 4;
        page.raw(&format!("<i style=\"left:{}%\">", tick * 25));
        page.text(&duration(at));
        page.raw("</i>");
    }
    page.raw("</div>\n");
    let percent = |ms: u64| ms as f64 * 100.0 / whole as f64;
    for (at, line) in bars.iter().take(MOST) {
        page.raw(&format!("<a class=\"name\" href=\"#line{at}\""));
        page.attribute("title", &one_line(&line.title, 300));
        page.raw(">");
        page.text(&title(line));
        page.raw("</a><div class=\"row\">");
        for resumed in &run.resumed_ms {
            page.raw(&format!(
                "<span class=\"mark\" title=\"resumed\" style=\"left:{:.3}%\"></span>",
                percent(*resumed)
            ));
        }
        let mut bar = |class: &str, from: u64, to: u64, tip: &str| {
            page.raw(&format!(
                "<span class=\"bar {class}\" style=\"left:{:.3}%;width:{:.3}%\"",
                percent(from.min(whole)).min(99.7),
                percent(to.min(whole).saturating_sub(from))
            ));
            page.attribute("title", tip);
            page.raw("></span>");
        };
        if line.attempts.is_empty() {
            let end = line.end_ms.unwrap_or(whole);
            let tip = format!(
                "{}, {}",
                line.state.word(),
                duration(end.saturating_sub(line.begin_ms))
            );
            bar(
                &format!("thin {}", class(line.state.word())),
                line.begin_ms,
                end,
                &tip,
            );
        }
        for (number, attempt) in line.attempts.iter().enumerate() {
            let end = attempt.end_ms.or(line.end_ms).unwrap_or(whole);
            let start = attempt.started_ms.unwrap_or(attempt.asked_ms).min(end);
            if start > attempt.asked_ms {
                let tip = format!("waited {} for its turn", duration(start - attempt.asked_ms));
                bar("queue", attempt.asked_ms, start, &tip);
            }
            let mut tip = format!("{}, {}", attempt.state.word(), duration(end - start));
            if line.attempts.len() > 1 {
                tip = format!("try {}: {tip}", number + 1);
            }
            if let Some(error) = &attempt.error {
                let _ = write!(tip, ": {}", one_line(error, 200));
            }
            bar(class(attempt.state.word()), start, end, &tip);
        }
        page.raw("</div>\n");
    }
    page.raw("</div></div>\n");
    more(page, bars.len());
    if !run.resumed_ms.is_empty() {
        page.raw("<p class=\"legend\">A dashed line: another process took the run up. The time in between is left out.</p>\n");
    }
}

/// Says that not all is shown.
fn more(page: &mut Page, all: usize) {
    if all > MOST {
        page.raw(&format!(
            "<p class=\"legend\">{} more are not shown.</p>\n",
            all - MOST
        ));
    }
}

/// What a line is called where there is no room for more.
fn title(line: &Line) -> String {
    let title = one_line(&line.title, 60);
    match (line.kind, &line.agent) {
        (LineKind::Session, Some(agent)) => format!("{agent}: {title}"),
        (LineKind::Judge, _) => format!("**{title}**"),
        (LineKind::Wait, _) => format!("wait {title}"),
        _ => title,
    }
}

fn tree(page: &mut Page, run: &RunReport) {
    if run.tree.is_empty() {
        return;
    }
    page.section("What ran");
    page.raw("<div class=\"scroll tree\">\n");
    for (at, line) in run.tree.iter().enumerate().take(MOST) {
        page.raw(&format!(
            "<div id=\"line{at}\" style=\"padding-left:{}px\">",
            12 + 22 * line.depth.min(16)
        ));
        let foldable = line.task.is_some() || line.reply.is_some() || line.attempts.len() > 1;
        if foldable {
            page.raw("<details><summary>");
        }
        page.raw("<span class=\"dot ");
        page.raw(class(line.state.word()));
        page.raw("\"");
        page.attribute("title", line.state.word());
        page.raw("></span>");
        match (line.kind, &line.agent) {
            (LineKind::Session, Some(agent)) => {
                page.raw("<span class=\"agent\">");
                page.text(agent);
                page.raw("</span> ");
            }
            (LineKind::Session | LineKind::Item, _) => {}
            (kind, _) => {
                page.raw("<span class=\"kind\">");
                page.raw(kind.word());
                page.raw("</span> ");
            }
        }
        page.text(&one_line(&line.title, 160));
        if let Some(verdict) = &line.verdict {
            page.raw(" → <b>");
            page.text(&one_line(&verdict.decision, 120));
            page.raw("</b>");
        }
        page.raw(" <span class=\"place\">");
        page.text(&facts(line));
        page.raw("</span>");
        if line.state.word() == "failed" && !line.summary.is_empty() {
            page.raw("<br><span class=\"bad-text\">");
            page.text(&one_line(&line.summary, 300));
            page.raw("</span>");
        }
        if foldable {
            page.raw("</summary>\n");
            details(page, line);
            page.raw("</details>");
        }
        page.raw("</div>\n");
    }
    page.raw("</div>\n");
    more(page, run.tree.len());
}

fn facts(line: &Line) -> String {
    let mut facts: Vec<String> = line.model.iter().cloned().collect();
    if let Some(end) = line.end_ms.filter(|end| *end > line.begin_ms) {
        facts.push(duration(end - line.begin_ms));
    }
    if line.attempts.len() > 1 {
        facts.push(format!("{} tries", line.attempts.len()));
    }
    let usage = super::lines::usage_note(&line.usage);
    if !usage.is_empty() {
        facts.push(usage.trim_matches([' ', '(', ')']).to_owned());
    }
    facts.extend(line.binding.as_ref().map(|binding| format!("→ {binding}")));
    facts.extend(line.place.clone());
    facts.join(" · ")
}

fn details(page: &mut Page, line: &Line) {
    if line.attempts.len() > 1 {
        page.raw("<table><tr><th>try</th><th>how</th><th class=\"n\">took</th></tr>\n");
        for (number, attempt) in line.attempts.iter().enumerate() {
            page.raw(&format!("<tr><td>{}</td><td>", number + 1));
            page.text(attempt.error.as_deref().unwrap_or(attempt.state.word()));
            page.raw("</td><td class=\"n\">");
            if let Some(end) = attempt.end_ms {
                page.text(&duration(end.saturating_sub(attempt.asked_ms)));
            }
            page.raw("</td></tr>\n");
        }
        page.raw("</table>\n");
    }
    if let Some(task) = &line.task {
        page.raw("<span class=\"soft\">task</span>\n");
        page.value(task);
    }
    if let Some(reply) = &line.reply {
        page.raw("<span class=\"soft\">result</span>\n");
        page.value(reply);
    }
}

fn verdicts(page: &mut Page, run: &RunReport) {
    let judged: Vec<(usize, &Line)> = run
        .tree
        .iter()
        .enumerate()
        .filter(|(_, line)| line.kind == LineKind::Judge)
        .collect();
    if judged.is_empty() {
        return;
    }
    page.section("Verdicts");
    page.raw("<div class=\"scroll\"><table><tr><th>question</th><th>answer</th><th class=\"n\">confidence</th><th>reason</th><th>where</th></tr>\n");
    for (_, line) in judged.iter().take(MOST) {
        page.raw("<tr><td>");
        page.text(&line.title);
        page.raw("</td><td><b>");
        match &line.verdict {
            Some(verdict) => page.text(&verdict.decision),
            None => page.text(line.state.word()),
        }
        page.raw("</b></td><td class=\"n\">");
        if let Some(verdict) = &line.verdict {
            page.text(&format!("{:.0} %", verdict.confidence * 100.0));
        }
        page.raw("</td><td>");
        page.text(
            line.verdict
                .as_ref()
                .map_or(&line.summary, |verdict| &verdict.reason),
        );
        page.raw("</td><td class=\"place\">");
        page.text(line.place.as_deref().unwrap_or_default());
        page.raw("</td></tr>\n");
    }
    page.raw("</table></div>\n");
    more(page, judged.len());
}

fn costs(page: &mut Page, run: &RunReport) {
    let mut rows: IndexMap<(String, String), (usize, usize, Usage)> = IndexMap::new();
    for line in &run.tree {
        let who = match line.kind {
            LineKind::Session => line.agent.clone().unwrap_or_else(|| "(no agent)".to_owned()),
            LineKind::Judge => "(judge)".to_owned(),
            _ => continue,
        };
        let row = rows
            .entry((who, line.model.clone().unwrap_or_default()))
            .or_default();
        row.0 += 1;
        row.1 += line.attempts.len().max(1);
        row.2.add(&line.usage);
    }
    if rows.is_empty() {
        return;
    }
    page.section("Costs");
    page.raw("<div class=\"scroll\"><table><tr><th>agent</th><th>model</th><th class=\"n\">sessions</th><th class=\"n\">tries</th><th class=\"n\">tokens in</th><th class=\"n\">tokens out</th><th class=\"n\">cost</th></tr>\n");
    for ((agent, model), (sessions, tries, usage)) in &rows {
        page.raw("<tr><td>");
        page.text(agent);
        page.raw("</td><td>");
        page.text(model);
        page.raw("</td>");
        let cost = usage
            .cost_usd
            .map_or_else(|| "–".to_owned(), |cost| format!("${cost:.4}"));
        for cell in [
            sessions.to_string(),
            tries.to_string(),
            usage.input_tokens.to_string(),
            usage.output_tokens.to_string(),
            cost,
        ] {
            page.raw("<td class=\"n\">");
            page.text(&cell);
            page.raw("</td>");
        }
        page.raw("</tr>\n");
    }
    page.raw("</table></div>\n");
}

fn values(page: &mut Page, run: &RunReport) {
    let fold = |page: &mut Page, name: &str, facts: &str, value: &Shown, open: bool| {
        page.raw(if open { "<details open>" } else { "<details>" });
        page.raw("<summary><code>");
        page.text(name);
        page.raw("</code> <span class=\"soft\">");
        page.text(facts);
        page.raw("</span></summary>\n");
        page.value(value);
        page.raw("</details>\n");
    };
    if !run.inputs.is_empty() {
        page.section("Inputs");
        page.raw("<div class=\"values\">\n");
        for input in &run.inputs {
            if let Some(value) = &input.value {
                let from = match input.from {
                    "start" => "given at the start",
                    "resume" => "given on resuming",
                    _ => "answered",
                };
                fold(
                    page,
                    &input.name,
                    &format!("{from} · {}", one_line(&input.prompt, 200)),
                    value,
                    false,
                );
            }
        }
        page.raw("</div>\n");
    }
    if !run.outputs.is_empty() || run.result.is_some() {
        page.section("Outputs");
        page.raw("<div class=\"values\">\n");
        for (name, value) in &run.outputs {
            fold(page, name, &size(value.bytes), value, true);
        }
        if let Some(value) = &run.result {
            fold(page, "result", &size(value.bytes), value, true);
        }
        page.raw("</div>\n");
    }
    let shown: Vec<&BindingLine> = run
        .bindings
        .iter()
        .filter(|binding| binding.kind != "loop")
        .collect();
    if !shown.is_empty() {
        page.section("Bindings");
        page.raw("<div class=\"values\">\n");
        for binding in shown.iter().take(MOST) {
            let mut name: String = binding
                .program
                .iter()
                .map(|folder| format!("{folder}/"))
                .collect();
            name.push_str(&binding.name);
            let mut facts = format!("{} · {}", binding.kind, size(binding.value.bytes));
            if let Some(id) = binding.execution_id {
                let _ = write!(facts, " · execution {id}");
            }
            if binding.times > 1 {
                let _ = write!(facts, " · bound {} times", binding.times);
            }
            if let Some(place) = &binding.place {
                let _ = write!(facts, " · {place}");
            }
            fold(page, &name, &facts, &binding.value, false);
        }
        page.raw("</div>\n");
        more(page, shown.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        let mut page = Page::default();
        page.text("</script><img onerror=\"x\" src='y'>&\u{0}\u{202e}");
        page.raw("|");
        page.attribute("title", "\"><script>");
        assert_eq!(
            page.html,
            "&lt;/script&gt;&lt;img onerror=&quot;x&quot; src=&#39;y&#39;&gt;&amp;\u{fffd}\u{fffd}| title=\"&quot;&gt;&lt;script&gt;\""
        );
    }

    #[test]
    fn only_known_words_become_classes() {
        assert_eq!(
            (class("done"), class("failed"), class("\"><b>")),
            ("ok", "failed", "cancelled")
        );
    }
}
