//! Where lines begin. Walks the tree and gives each token a [`Gap`]; whether bracketed lists are broken is decided
//! later, by [`crate::wrap`], when columns are known.
//!
//! Three columns are at work: that of the block a statement stands in, at which its clauses (`else:`) stand, too; that of
//! the blocks and continuation lines under it, two deeper; and that of the line. They differ in chains: all blocks in a
//! broken chain must be deeper than the chain's continuation lines, or the next `|` would belong to what is in the block.

use prose_syntax::SyntaxKind::{self, *};

use crate::{
    Options,
    source::{Kid, Source, is_closer, takes_trailing_comma},
};

/// Columns of one level.
pub(crate) const INDENT: u32 = 2;

/// What stands before a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gap {
    /// Not decided; the same as `Flat`.
    Unset,
    /// As on one line.
    Flat,
    /// Bytes of the source.
    Keep,
    /// Before a comment behind code: the author's blanks, at least one.
    Trailing,
    /// A line begins, perhaps after an empty one.
    Line { indent: u32, blank: bool },
    /// A line begins inside a broken bracket, this much deeper than its elements.
    Inside { extra: u32, blank: bool },
}

/// A bracketed list that may be broken into lines.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) open: u32,
    pub(crate) close: u32,
    pub(crate) kind: SyntaxKind,
    /// Tokens that begin a line when it is broken, in order.
    pub(crate) items: Vec<u32>,
    /// Last token of the last element.
    pub(crate) last: Option<u32>,
    /// The comma before the closing bracket.
    pub(crate) comma: Option<u32>,
    pub(crate) style: Style,
}

/// How a group is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// On one line if that fits.
    Auto,
    /// One element a line.
    Broken,
    /// Never broken itself: it holds one other bracket, which is.
    Hug,
    /// On one line, whatever the width.
    Flat,
}

/// A statement, or part of one, that must stay as it is.
struct Frozen;

type Done = Result<(), Frozen>;

/// Gaps and groups of a whole file.
pub(crate) struct Plan {
    pub(crate) gaps: Vec<Gap>,
    /// In the order of their opening brackets.
    pub(crate) groups: Vec<Group>,
}

/// Lays out a file. `frozen` marks nodes whose bytes must stay; `check` asks for a look at the columns of neighbours,
/// which can differ only in a file with errors.
pub(crate) fn layout(source: &Source<'_>, frozen: &[bool], check: bool, options: &Options) -> Plan {
    let mut layout = Layout {
        source,
        frozen,
        check,
        width: options.width,
        gaps: vec![Gap::Unset; source.tokens.len()],
        groups: Vec::new(),
        brackets: 0,
        forced: false,
        multi: false,
        line: (0, 0),
    };
    // The root can't be frozen as a whole: it has no statement around it to give up.
    let _ = layout.list(0, 0, true);
    layout.comments_left();
    Plan {
        gaps: layout.gaps,
        groups: layout.groups,
    }
}

struct Layout<'s> {
    source: &'s Source<'s>,
    frozen: &'s [bool],
    check: bool,
    width: u32,
    gaps: Vec<Gap>,
    groups: Vec<Group>,
    /// Open brackets.
    brackets: u32,
    /// Whether something in the innermost bracket needs lines of its own.
    forced: bool,
    /// Whether there is a token with several lines in it.
    multi: bool,
    /// First token and column of the current line.
    line: (u32, u32),
}

impl Layout<'_> {
    fn is_frozen(&self, node: u32) -> bool {
        self.frozen.get(node as usize).copied().unwrap_or(false)
    }

    // ---- lines ---------------------------------------------------------------------------------

    /// Begins a line at a token; comments above it that belong to nothing else get the same column.
    fn set_line(&mut self, token: u32, indent: u32) {
        self.gaps[token as usize] = Gap::Line { indent, blank: false };
        self.comments_before(token, indent);
        self.line = (token, indent);
    }

    fn comments_before(&mut self, token: u32, indent: u32) {
        let mut at = token;
        while at > 0 && self.source.is_comment(at - 1) && self.gaps[at as usize - 1] == Gap::Unset {
            at -= 1;
            let gap = match self.is_trailing(at) {
                true => Gap::Trailing,
                false => Gap::Line { indent, blank: false },
            };
            self.gaps[at as usize] = gap;
        }
    }

    /// Comments that nothing was asked about: those behind the colon of a block.
    fn comments_left(&mut self) {
        for at in 0..self.source.tokens.len() {
            let token = u32::try_from(at).unwrap_or(u32::MAX);
            if self.gaps[at] == Gap::Unset && self.source.is_comment(token) {
                self.gaps[at] = match self.is_trailing(token) {
                    true => Gap::Trailing,
                    false => Gap::Keep,
                };
            }
        }
    }

    /// Whether a comment stands behind code.
    fn is_trailing(&self, comment: u32) -> bool {
        comment > 0 && self.source.token(comment).breaks == 0
    }

    /// Gap of a token in the middle of a line.
    fn set_flat(&mut self, token: u32) {
        if self.brackets == 0 {
            self.gaps[token as usize] = Gap::Flat;
            return;
        }
        self.gaps[token as usize] = match token > 0 && self.source.is_comment(token - 1) {
            true => Gap::Inside {
                extra: INDENT,
                blank: false,
            },
            false => Gap::Flat,
        };
        self.comments_inside(token);
    }

    /// Comments before a token inside a bracket.
    fn comments_inside(&mut self, token: u32) {
        let mut at = token;
        while at > 0 && self.source.is_comment(at - 1) && self.gaps[at as usize - 1] == Gap::Unset {
            at -= 1;
            self.forced = true;
            self.gaps[at as usize] = match self.is_trailing(at) {
                true => Gap::Trailing,
                false => Gap::Inside {
                    extra: 0,
                    blank: self.source.token(at).breaks > 1,
                },
            };
        }
    }

    // ---- lists of statements ---------------------------------------------------------------------

    /// Statements, properties, options or dash items, one below the other.
    fn list(&mut self, node: u32, indent: u32, top: bool) -> Done {
        let source = self.source;
        let mut from = self.list_start(node);
        let mut before: Option<u32> = None;
        let mut column = None;
        for (index, kid) in source.kids(node).iter().enumerate() {
            let Some(first) = source.first(*kid) else { continue };
            let Kid::Node(item) = *kid else {
                // Only a broken tree has bare tokens here.
                if top {
                    self.keep(first, first + 1);
                    continue;
                }
                return Err(Frozen);
            };
            let actual = match self.check {
                true => source.column(first),
                false => None,
            };
            let mut astray = false;
            if self.check {
                astray = if top {
                    actual != Some(0)
                } else {
                    actual.is_none() || actual != *column.get_or_insert(actual)
                };
            }
            if astray && !top {
                return Err(Frozen);
            }
            self.items_gap(from, first, indent, before, Some(item), top);
            // A line astray belongs to no block above it only as long as these keep their columns.
            let before_astray = top && self.check && self.is_astray(source.kids(node).get(index + 1));
            if astray {
                self.keep(first, source.node(item).tokens.end);
            } else if before_astray {
                self.keep(first + 1, source.node(item).tokens.end);
            } else {
                self.line = (first, indent);
                let groups = self.groups.len();
                if self.lay(item, indent, indent + INDENT).is_err() {
                    self.groups.truncate(groups);
                    (self.brackets, self.forced, self.multi) = (0, false, false);
                    self.keep(first + 1, source.node(item).tokens.end);
                    if !top && actual != Some(indent) {
                        return Err(Frozen);
                    }
                }
            }
            from = source.node(item).tokens.end;
            before = Some(item);
        }
        let end = source.node(node).tokens.end;
        self.items_gap(from, end, indent, before, None, top);
        Ok(())
    }

    /// First token of a list with the comments above its first item. Where its items have the column of the line above,
    /// these stand before the list.
    fn list_start(&self, node: u32) -> u32 {
        let source = self.source;
        let mut start = source.node(node).tokens.start;
        if matches!(source.node(node).kind, OPTION_LIST | DASH_LIST) {
            while start > 0
                && source.is_comment(start - 1)
                && !self.is_trailing(start - 1)
                && self.gaps[start as usize - 1] == Gap::Unset
            {
                start -= 1;
            }
        }
        start
    }

    /// Whether a top-level item begins elsewhere than at the start of a line.
    fn is_astray(&self, kid: Option<&Kid>) -> bool {
        kid.and_then(|it| self.source.first(*it))
            .is_some_and(|it| self.source.column(it) != Some(0))
    }

    fn keep(&mut self, from: u32, to: u32) {
        for gap in &mut self.gaps[from as usize..to as usize] {
            *gap = Gap::Keep;
        }
    }

    /// Gaps from behind one item up to the first token of the next one (`to`), or to the end of the list.
    fn items_gap(
        &mut self,
        from: u32,
        to: u32,
        indent: u32,
        before: Option<u32>,
        next: Option<u32>,
        top: bool,
    ) {
        let source = self.source;
        let end = to + u32::from(next.is_some());
        let mut empty_body = before.is_some_and(|it| self.ends_empty(it));
        let mut first_line = None;
        let mut any_blank = false;
        for at in from..end {
            if at < to && self.is_trailing(at) {
                self.gaps[at as usize] = Gap::Trailing;
                continue;
            }
            // What an author wrote into an empty body stays there.
            empty_body &= at < to && source.column(at).is_some_and(|it| it > indent);
            let starts = match empty_body {
                true => at == from || (at == from + 1 && self.is_trailing(from)),
                false => before.is_none() && at == from,
            };
            let blank = source.token(at).breaks > 1 && !starts;
            if !empty_body {
                any_blank |= blank;
                first_line.get_or_insert(at);
            }
            self.gaps[at as usize] = Gap::Line {
                indent: indent + if empty_body { INDENT } else { 0 },
                blank,
            };
        }
        let defines =
            |it: Option<u32>| it.is_some_and(|it| matches!(source.node(it).kind, AGENT_DEF | BLOCK_DEF));
        if top
            && !any_blank
            && before.is_some()
            && (defines(before) || defines(next))
            && let Some(at) = first_line
            && let Gap::Line { blank, .. } = &mut self.gaps[at as usize]
        {
            *blank = next.is_some() || self.source.is_comment(at);
        }
    }

    /// Whether a node ends with the colon of a body that has nothing in it.
    fn ends_empty(&self, node: u32) -> bool {
        self.source
            .last(node)
            .is_some_and(|it| self.source.token(it).kind == COLON)
    }

    // ---- nodes -------------------------------------------------------------------------------------

    /// Lays out all but the first token of a node. `indent` is the column of the block it stands in, `deeper` that of
    /// its blocks and continuation lines.
    fn lay(&mut self, node: u32, indent: u32, deeper: u32) -> Done {
        let source = self.source;
        let kind = source.node(node).kind;
        if kind == ERROR || self.is_frozen(node) {
            return Err(Frozen);
        }
        match kind {
            PIPE_EXPR | ARROW_EXPR if self.brackets == 0 => return self.chain(node, indent, deeper),
            LIST_EXPR | OBJECT_EXPR | ARG_LIST | PARAM_LIST | MODIFIER_LIST | RECORD_PATTERN | PAREN_EXPR
            | INDEX_EXPR | COMPUTED_NAME => {
                if let Some((open, close)) = self.bracket(node) {
                    return self.group(node, open, close, indent, deeper);
                }
            }
            _ => {}
        }
        for (index, kid) in source.kids(node).iter().enumerate() {
            self.kid(*kid, index == 0, indent, deeper)?;
        }
        Ok(())
    }

    /// A part of a node; the gap of the node's first token was set by whoever knows what stands before.
    fn kid(&mut self, kid: Kid, leads: bool, indent: u32, deeper: u32) -> Done {
        let source = self.source;
        let Some(first) = source.first(kid) else {
            return Ok(());
        };
        let node = match kid {
            Kid::Token(it) => {
                self.multi |= source.token(it).multi;
                if !leads {
                    if self.brackets == 0 && source.breaks_before(it) {
                        self.set_line(it, deeper);
                    } else {
                        self.set_flat(it);
                    }
                }
                return Ok(());
            }
            Kid::Node(it) => it,
        };
        if leads {
            return self.lay(node, indent, deeper);
        }
        if self.brackets > 0 {
            if source.node(node).kind == PROPERTY_LIST {
                return self.properties_inside(node, indent, deeper);
            }
            self.set_flat(first);
            return self.lay(node, indent, deeper);
        }
        match source.node(node).kind {
            BODY | PROPERTY_LIST if source.is_indented(node) => self.block(node, deeper),
            OPTION_LIST | DASH_LIST => self.block(node, deeper),
            ELIF_CLAUSE | ELSE_CLAUSE | CATCH_CLAUSE | FINALLY_CLAUSE if source.breaks_before(first) => {
                self.set_line(first, indent);
                self.lay(node, indent, deeper)
            }
            _ if source.breaks_before(first) => self.value_below(node, first, indent, deeper),
            _ => {
                self.gaps[first as usize] = Gap::Flat;
                self.lay(node, indent, deeper)
            }
        }
    }

    /// An indented block. The line it interrupts goes on behind it, if at all, on a new one.
    fn block(&mut self, node: u32, indent: u32) -> Done {
        self.list(node, indent, false)
    }

    /// A value that begins on a line of its own: joined with the line above unless a comment or the width forbids it.
    fn value_below(&mut self, node: u32, first: u32, indent: u32, deeper: u32) -> Done {
        let source = self.source;
        let (line, column) = self.line;
        let joined = column + source.distance(line, first) + self.head_width(node, first);
        if source.is_comment(first - 1) || joined > self.width {
            self.set_line(first, deeper);
            self.lay(node, deeper, deeper + INDENT)?;
            let column = source.column(first);
            self.comments_below(node, deeper, |at| source.column(at) >= column);
            return Ok(());
        }
        self.gaps[first as usize] = Gap::Flat;
        self.lay(node, indent, deeper)?;
        // They were in the value's block, which is no more.
        self.comments_below(node, indent, |_| true);
        Ok(())
    }

    /// Gives comments on the lines below a value a column, as far as they are its.
    fn comments_below(&mut self, node: u32, indent: u32, its: impl Fn(u32) -> bool) {
        let source = self.source;
        let mut at = source.node(node).tokens.end;
        while (at as usize) < source.tokens.len()
            && source.is_comment(at)
            && self.gaps[at as usize] == Gap::Unset
            && !self.is_trailing(at)
            && its(at)
        {
            self.gaps[at as usize] = Gap::Line { indent, blank: false };
            at += 1;
        }
    }

    /// Width of what can't be moved to another line at the start of a node.
    fn head_width(&self, node: u32, first: u32) -> u32 {
        let source = self.source;
        let mut last = first;
        for at in first..source.node(node).tokens.end {
            let token = source.token(at);
            if at > first && (token.breaks > 0 || token.kind == COMMENT) {
                break;
            }
            last = at;
            if token.multi || matches!(token.kind, L_PAREN | L_BRACK | L_BRACE) {
                break;
            }
        }
        source.distance(first, last) + source.width(last)
    }

    // ---- chains --------------------------------------------------------------------------------------

    /// `a -> b`, `xs | map: …`: on one line, or each step on a line of its own.
    fn chain(&mut self, node: u32, indent: u32, deeper: u32) -> Done {
        let source = self.source;
        let kids = source.kids(node);
        let begins_step = |kid: &Kid| matches!(source.kind(*kid), ARROW | PIPE_OP);
        let steps = || kids.iter().filter(|kid| begins_step(kid));
        let broken = steps()
            .filter_map(|kid| source.first(*kid))
            .any(|it| source.breaks_before(it));
        let too_wide = || {
            let (line, column) = self.line;
            self.flat_end(node)
                .is_some_and(|end| column + source.distance(line, end) + source.width(end) > self.width)
        };
        if !(broken || too_wide()) {
            for (index, kid) in kids.iter().enumerate() {
                self.kid(*kid, index == 0, indent, deeper)?;
            }
            return Ok(());
        }
        for (index, kid) in kids.iter().enumerate() {
            match source.first(*kid) {
                Some(first) if index > 0 && begins_step(kid) => {
                    self.set_line(first, deeper);
                    if let Kid::Node(step) = *kid {
                        self.lay(step, indent, deeper + INDENT)?;
                    }
                }
                _ => self.kid(*kid, index == 0, indent, deeper + INDENT)?,
            }
        }
        Ok(())
    }

    /// Last token of a node's first line, if everything before its last block is on it.
    fn flat_end(&self, node: u32) -> Option<u32> {
        let source = self.source;
        let mut node = node;
        loop {
            let kids = source.kids(node);
            let last = kids.iter().rposition(|kid| source.first(*kid).is_some())?;
            match kids[last] {
                Kid::Token(it) => return Some(it),
                Kid::Node(it) if source.is_indented(it) && last > 0 => {
                    let before = kids[..last].iter().rev().find_map(|kid| match *kid {
                        Kid::Token(it) => Some(it),
                        Kid::Node(it) => source.last(it),
                    });
                    return before;
                }
                Kid::Node(it) => node = it,
            }
        }
    }

    // ---- brackets ------------------------------------------------------------------------------------

    /// The brackets of a node: `None` when it has none, as the list in `context: a, b`.
    fn bracket(&self, node: u32) -> Option<(u32, u32)> {
        let kids = self.source.kids(node);
        let tokens = || {
            kids.iter().filter_map(|kid| match kid {
                Kid::Token(it) => Some(*it),
                Kid::Node(_) => None,
            })
        };
        let kind = |it: &u32| self.source.token(*it).kind;
        let open = tokens().find(|it| matches!(kind(it), L_PAREN | L_BRACK | L_BRACE))?;
        let close = tokens().next_back().filter(|it| is_closer(kind(it)))?;
        Some((open, close))
    }

    fn group(&mut self, node: u32, open: u32, close: u32, indent: u32, deeper: u32) -> Done {
        let source = self.source;
        let kind = source.node(node).kind;
        let outer = (self.forced, self.multi);
        (self.forced, self.multi) = (false, false);
        let slot = self.groups.len();
        self.groups.push(Group {
            open,
            close,
            kind,
            items: Vec::new(),
            last: None,
            comma: None,
            style: Style::Auto,
        });
        let mut inside = false;
        let mut elements = Vec::new();
        let mut comma = None;
        for (index, kid) in source.kids(node).iter().enumerate() {
            if *kid == Kid::Token(open) {
                if index > 0 {
                    self.gaps[open as usize] = Gap::Flat;
                    self.comments_inside(open);
                }
                inside = true;
                self.brackets += 1;
                continue;
            }
            match *kid {
                Kid::Node(it) if inside => {
                    if let Some(first) = source.first(*kid) {
                        self.gaps[first as usize] = Gap::Flat;
                        self.comments_inside(first);
                        elements.push(it);
                    }
                    self.lay(it, indent, deeper)?;
                }
                Kid::Token(it) if it == close => {
                    self.gaps[it as usize] = Gap::Flat;
                    self.comments_inside(it);
                    self.brackets -= 1;
                    inside = false;
                }
                Kid::Token(it) => {
                    if source.token(it).trailing_comma {
                        comma = Some(it);
                    }
                    self.kid(*kid, index == 0, indent, deeper)?;
                }
                Kid::Node(_) => self.kid(*kid, index == 0, indent, deeper)?,
            }
        }
        if inside {
            self.brackets -= 1;
        }
        let mut items: Vec<u32> = elements
            .iter()
            .filter_map(|it| source.first(Kid::Node(*it)))
            .collect();
        let magic = comma.is_some()
            && source.token(close).breaks > 0
            && items.iter().all(|it| source.token(*it).breaks > 0);
        let broken_by_author = items.first().is_some_and(|it| source.breaks_before(*it));
        let hugs = !self.comments_in(open, close, &elements)
            && elements.len() == 1
            && elements.first().is_some_and(|it| self.hugs(*it));
        let style = if matches!(kind, INDEX_EXPR | COMPUTED_NAME) && !self.forced {
            Style::Flat
        } else if hugs {
            Style::Hug
        } else if self.forced || magic || (self.multi && broken_by_author) {
            Style::Broken
        } else if self.multi || elements.is_empty() {
            Style::Flat
        } else {
            Style::Auto
        };
        let last = elements.last().and_then(|it| source.last(*it));
        if kind == PAREN_EXPR
            && let Some(inner) = elements.first()
        {
            self.operators(*inner, &mut items);
        }
        let forces = style == Style::Broken || (style == Style::Hug && self.forced);
        if let Some(group) = self.groups.get_mut(slot) {
            group.items = items;
            group.last = last;
            group.comma = comma;
            group.style = style;
        }
        self.multi |= outer.1;
        self.forced = outer.0 || (forces && self.brackets > 0);
        Ok(())
    }

    /// Whether an element is nothing but one bracketed list.
    fn hugs(&self, element: u32) -> bool {
        let source = self.source;
        let mut node = element;
        loop {
            let kind = source.node(node).kind;
            if matches!(kind, LIST_EXPR | OBJECT_EXPR) {
                return self.bracket(node).is_some();
            }
            match source.kids(node) {
                [Kid::Node(only)] if matches!(kind, ARG | MODIFIER | OBJECT_FIELD) => node = *only,
                _ => return false,
            }
        }
    }

    /// Whether a bracket has comments that are in none of its elements.
    fn comments_in(&self, open: u32, close: u32, elements: &[u32]) -> bool {
        let mut at = open + 1;
        for element in elements {
            let tokens = &self.source.node(*element).tokens;
            if (at..tokens.start).any(|it| self.source.is_comment(it)) {
                return true;
            }
            at = tokens.end;
        }
        (at..close).any(|it| self.source.is_comment(it))
    }

    /// Operators at which the content of parentheses can be broken: those that bind weakest in it.
    fn operators(&self, inner: u32, items: &mut Vec<u32>) {
        let source = self.source;
        let operator = |node: u32| {
            source.kids(node).iter().find_map(|kid| match *kid {
                Kid::Token(it) => Some(it),
                Kid::Node(_) => None,
            })
        };
        let class = |token: u32| match source.token(token).kind {
            MINUS => PLUS,
            kind => kind,
        };
        match source.node(inner).kind {
            BIN_EXPR => {
                let Some(weakest) = operator(inner).map(class) else {
                    return;
                };
                let mut node = inner;
                while source.node(node).kind == BIN_EXPR
                    && let Some(token) = operator(node).filter(|it| class(*it) == weakest)
                {
                    items.push(token);
                    match source.kids(node).first() {
                        Some(Kid::Node(left)) => node = *left,
                        _ => break,
                    }
                }
                items.sort_unstable();
            }
            ARROW_EXPR | PIPE_EXPR => items.extend(
                source
                    .kids(inner)
                    .iter()
                    .filter(|kid| matches!(source.kind(**kid), ARROW | PIPE_OP))
                    .filter_map(|kid| source.first(*kid)),
            ),
            _ => {}
        }
    }

    /// Properties of a session inside a bracket: on its line, or on the lines below if the author wrote them there.
    fn properties_inside(&mut self, node: u32, indent: u32, deeper: u32) -> Done {
        let source = self.source;
        if self.is_frozen(node) {
            return Err(Frozen);
        }
        for kid in source.kids(node) {
            let Some(first) = source.first(*kid) else { continue };
            self.set_flat(first);
            if source.kind(*kid) == PROPERTY && source.token(first).breaks > 0 {
                self.gaps[first as usize] = Gap::Inside {
                    extra: INDENT,
                    blank: false,
                };
                self.forced = true;
            }
            if let Kid::Node(it) = *kid {
                self.lay(it, indent, deeper)?;
            }
        }
        Ok(())
    }
}

impl Group {
    /// Whether a comma belongs behind the last element when it is broken.
    pub(crate) fn wants_comma(&self) -> bool {
        takes_trailing_comma(self.kind) && self.last.is_some()
    }
}
