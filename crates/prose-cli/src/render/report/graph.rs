//! The picture of who worked with whose results: sessions from left to right, edges for data and for order.

use prose_runtime::runs::{LineKind, RunReport};

use super::{Page, class};
use crate::render::lines::{duration, one_line};

/// More sessions make no picture that says anything.
const MOST: usize = 250;

const WIDTH: usize = 178;
const HEIGHT: usize = 40;
const GAP_X: usize = 56;
const GAP_Y: usize = 14;

/// Draws the graph.
pub(super) fn graph(page: &mut Page, run: &RunReport) {
    let sessions: Vec<usize> = (0..run.tree.len())
        .filter(|&at| run.tree[at].kind == LineKind::Session)
        .collect();
    if sessions.len() < 2 {
        return;
    }
    page.section("Sessions and what they pass on");
    if sessions.len() > MOST {
        page.raw(&format!(
            "<p class=\"legend\">{} sessions are too many to draw.</p>\n",
            sessions.len()
        ));
        return;
    }
    // An edge leads to what was asked for later, so one pass in the order of asking finds each session's column.
    let mut order = sessions.clone();
    order.sort_by_key(|&at| (run.tree[at].begin_ms, at));
    let mut column = vec![0usize; run.tree.len()];
    // As many passes as it takes; a session that used its own result in a loop must not go round for ever.
    for _ in 0..order.len() {
        let mut changed = false;
        for edge in &run.flow {
            let wanted = column[edge.from] + 1;
            if column[edge.to] < wanted && wanted < order.len() {
                column[edge.to] = wanted;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    let mut filled: Vec<usize> = Vec::new();
    let mut place = vec![(0usize, 0usize); run.tree.len()];
    for &at in &order {
        let x = column[at];
        if filled.len() <= x {
            filled.resize(x + 1, 0);
        }
        place[at] = (x, filled[x]);
        filled[x] += 1;
    }
    let tallest = filled.iter().copied().max().unwrap_or(1);
    let width = filled.len() * (WIDTH + GAP_X) - GAP_X + 24;
    let height = tallest * (HEIGHT + GAP_Y) - GAP_Y + 24;
    let corner = |at: usize| {
        let (x, y) = place[at];
        // Short columns stand in the middle.
        let free = (tallest - filled[x]) * (HEIGHT + GAP_Y) / 2;
        (12 + x * (WIDTH + GAP_X), 12 + y * (HEIGHT + GAP_Y) + free)
    };
    page.raw(&format!(
        "<div class=\"scroll\"><svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"graph of sessions\">\n"
    ));
    for edge in &run.flow {
        let ((ax, ay), (bx, by)) = (corner(edge.from), corner(edge.to));
        let (x1, y1, x2, y2) = (ax + WIDTH, ay + HEIGHT / 2, bx, by + HEIGHT / 2);
        let bend = GAP_X / 2;
        page.raw(&format!(
            "<path class=\"{}\" d=\"M{x1} {y1} C{} {y1} {} {y2} {x2} {y2}\"/>\n",
            edge.kind,
            x1 + bend,
            x2.saturating_sub(bend),
        ));
    }
    for &at in &sessions {
        let line = &run.tree[at];
        let (x, y) = corner(at);
        page.raw(&format!(
            "<a href=\"#line{at}\"><rect class=\"box {}\" x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"6\"/><text x=\"{}\" y=\"{}\">",
            class(line.state.word()),
            x + 9,
            y + 17,
        ));
        page.text(&one_line(&line.title, 25));
        page.raw(&format!(
            "</text><text class=\"sub\" x=\"{}\" y=\"{}\">",
            x + 9,
            y + 32
        ));
        let mut below: Vec<String> = line.agent.iter().map(|agent| one_line(agent, 16)).collect();
        if let Some(end) = line.end_ms {
            below.push(duration(end.saturating_sub(line.begin_ms)));
        }
        page.text(&below.join(" · "));
        page.raw("</text><title>");
        page.text(&one_line(&line.title, 300));
        page.raw("</title></a>\n");
    }
    page.raw("</svg></div>\n<p class=\"legend\"><b>Solid</b>: the result is given as context. <b>Dotted</b>: the same agent's memory. <b>Dashed</b>: comes after.</p>\n");
}
