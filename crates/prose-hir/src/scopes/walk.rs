//! The walk over a chunk that finds its scopes, declarations and uses, in the order of evaluation.

use std::sync::Arc;

use crate::Name;
use prose_syntax::TextRange;

use super::index::NameIndex;
use super::{Def, DefKind, Frame, FrameKind, Holds, ROOT, Ref, RefKind, Scope, Scopes, Valued};
use crate::hir::*;

impl Scopes {
    /// Walks a chunk. What it declares is left open.
    pub fn of(body: &ChunkBody) -> Scopes {
        let mut walk = Walk {
            frames: vec![Frame {
                kind: FrameKind::Root,
                parent: None,
            }],
            scopes: Vec::new(),
            defs: Vec::new(),
            refs: Vec::new(),
            scope: ROOT,
            judged: Vec::new(),
            held: Vec::new(),
            seq: 0,
            groups: 0,
            valued: Valued::Yes,
            last: Valued::Last,
        };
        let range = match (body.stmts.first(), body.stmts.last()) {
            (Some(first), Some(last)) => first.range.cover(last.range),
            _ => TextRange::default(),
        };
        walk.scopes.push(Scope {
            parent: None,
            frame: ROOT,
            range,
            last: ROOT,
            home: ROOT,
            seqs: (0, u32::MAX),
            hides: false,
            looped: false,
            group: 0,
            exits: false,
            parallel: false,
        });
        walk.stmts(&body.stmts);
        walk.scopes[ROOT as usize].last = walk.scopes.len() as u32 - 1;
        Scopes {
            names: NameIndex::new(&walk.scopes, &walk.defs),
            frames: walk.frames.into(),
            scopes: walk.scopes.into(),
            defs: walk.defs.into(),
            refs: walk.refs.into(),
            judged: walk.judged.into(),
            held: walk.held.into(),
            declared: Arc::default(),
        }
    }
}

struct Walk {
    frames: Vec<Frame>,
    scopes: Vec<Scope>,
    defs: Vec<Def>,
    refs: Vec<Ref>,
    scope: u32,
    judged: Vec<(u32, u32)>,
    held: Vec<(Name, Holds)>,
    seq: u32,
    groups: u32,
    /// Of the expression that is walked next.
    valued: Valued,
    /// Of the last of the statements that are walked next.
    last: Valued,
}

/// What a new scope is like.
#[derive(Clone, Copy, Default)]
struct Kind {
    hides: bool,
    looped: bool,
    group: u32,
    parallel: bool,
}

impl Walk {
    fn next(&mut self) -> u32 {
        self.seq += 1;
        self.seq
    }

    fn def(&mut self, ident: &Ident, kind: DefKind, full: TextRange) {
        let seq = self.next();
        self.defs.push(Def {
            name: ident.name,
            range: ident.range,
            kind,
            scope: self.scope,
            seq,
            full,
            promotes: false,
            valued: Valued::No,
        });
    }

    fn opt_def(&mut self, ident: &Option<Ident>, kind: DefKind, full: TextRange) {
        if let Some(ident) = ident {
            self.def(ident, kind, full);
        }
    }

    fn used(&mut self, name: &Name, range: TextRange, kind: RefKind) {
        let seq = self.next();
        self.refs.push(Ref {
            name: *name,
            range,
            kind,
            scope: self.scope,
            seq,
        });
    }

    fn group(&mut self) -> u32 {
        self.groups += 1;
        self.groups
    }

    fn frame(&mut self, kind: FrameKind, parent: Option<u32>) -> u32 {
        self.frames.push(Frame { kind, parent });
        self.frames.len() as u32 - 1
    }

    fn within(&mut self, range: TextRange, kind: Kind, frame: Option<u32>, run: impl FnOnce(&mut Walk)) {
        let outer = self.scope;
        let number = self.scopes.len() as u32;
        let around = &self.scopes[outer as usize];
        let frame = frame.unwrap_or(around.frame);
        let seen_outside = !kind.hides && frame == around.frame;
        self.scopes.push(Scope {
            parent: Some(outer),
            frame,
            range,
            last: number,
            home: if seen_outside { around.home } else { number },
            seqs: (self.seq, self.seq),
            hides: kind.hides,
            looped: kind.looped,
            group: kind.group,
            exits: false,
            parallel: kind.parallel,
        });
        self.scope = number;
        run(self);
        self.scopes[number as usize].last = self.scopes.len() as u32 - 1;
        self.scopes[number as usize].seqs.1 = self.seq;
        self.scope = outer;
    }

    fn body(&mut self, body: &Body, kind: Kind) {
        self.within(body.range, kind, None, |walk| walk.stmts(&body.stmts));
    }

    fn stmts(&mut self, stmts: &[Stmt]) {
        let last = std::mem::replace(&mut self.last, Valued::Yes);
        for (index, stmt) in stmts.iter().enumerate() {
            self.valued = if index + 1 == stmts.len() {
                last
            } else {
                Valued::No
            };
            self.stmt(stmt);
        }
        self.valued = Valued::Yes;
        let exits = stmts.last().is_some_and(|stmt| match &stmt.kind {
            StmtKind::Expr(expr) => {
                matches!(
                    expr.kind,
                    ExprKind::Throw(_) | ExprKind::Return { .. } | ExprKind::Break
                )
            }
            _ => false,
        });
        if self.scope != ROOT {
            self.scopes[self.scope as usize].exits = exits;
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Use(it) => {
                let named = it.alias.clone().or_else(|| {
                    let (target, range) = it.target.as_ref()?;
                    Some(Ident {
                        name: crate::paths::default_name(target)?,
                        range: *range,
                    })
                });
                self.opt_def(&named, DefKind::Import, stmt.range);
            }
            StmtKind::SkillImport { .. } => {}
            StmtKind::Agent(it) => {
                self.opt_def(&it.name, DefKind::Agent, stmt.range);
                let frame = self.frame(FrameKind::Agent, None);
                self.within(stmt.range, Kind::default(), Some(frame), |walk| {
                    walk.props(&it.props)
                });
            }
            StmtKind::Block(it) => {
                self.opt_def(&it.name, DefKind::Block, stmt.range);
                let name = it.name.as_ref().map(|it| it.name).unwrap_or_default();
                let frame = self.frame(FrameKind::Block(name), None);
                self.within(stmt.range, Kind::default(), Some(frame), |walk| {
                    for param in &it.params {
                        walk.def(param, DefKind::Param, stmt.range);
                    }
                    walk.mods(&it.mods);
                    walk.stmts(&it.body.stmts);
                });
            }
            StmtKind::Expr(it) => self.expr(it),
        }
    }

    fn exprs<'a>(&mut self, exprs: impl IntoIterator<Item = &'a Expr>) {
        for expr in exprs {
            self.expr(expr);
        }
    }

    fn mods(&mut self, mods: &[Modifier]) {
        for it in mods {
            let word = it
                .name
                .as_ref()
                .is_none_or(|it| matches!(it.name.as_str(), "on-fail" | "on_fail" | "strategy" | "join"));
            match &it.value {
                // A strategy or policy without its quotes.
                Some(Expr {
                    kind: ExprKind::Name(_),
                    ..
                }) if word => {}
                Some(value) => self.expr(value),
                None => {}
            }
        }
    }

    fn args(&mut self, args: &[Argument]) {
        self.exprs(args.iter().map(|it| &it.value));
    }

    fn template(&mut self, text: &Template) {
        for part in &text.parts {
            if let Part::Insert(it) = part {
                self.insert(&it.value);
            }
        }
    }

    fn insert(&mut self, value: &Expr) {
        match &value.kind {
            ExprKind::Name(name) => self.used(name, value.range, RefKind::Insert),
            ExprKind::Member { of, .. } => self.insert(of),
            ExprKind::Index { of, index } => {
                self.insert(of);
                self.insert(index);
            }
            _ => {}
        }
    }

    /// Properties in the order in which a session evaluates them; unknown ones are skipped with their lines.
    fn props(&mut self, props: &[Property]) {
        for prop in props {
            match (prop.key.name.as_str(), &prop.value) {
                ("prompt" | "retry" | "context", value) => self.prop_value(value),
                // A bare word is a model or a back-off by name.
                ("model" | "backoff" | "persist", PropValue::Expr(it))
                    if !matches!(it.kind, ExprKind::Name(_)) =>
                {
                    self.expr(it);
                }
                ("skills", PropValue::Expr(it)) => self.words(it),
                ("skills", PropValue::Dashes(items, _)) => items.iter().for_each(|it| self.words(it)),
                ("permissions", PropValue::Nested(rules, _)) => {
                    for rule in rules {
                        match &rule.value {
                            PropValue::Expr(it) if !matches!(it.kind, ExprKind::Name(_)) => self.words(it),
                            PropValue::Dashes(items, _) => items.iter().for_each(|it| self.words(it)),
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// A list whose names are plain words unless something declares them.
    fn words(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Name(name) => self.used(name, expr.range, RefKind::Word),
            ExprKind::List { items, .. } => items.iter().for_each(|it| self.words(it)),
            _ => self.expr(expr),
        }
    }

    fn prop_value(&mut self, value: &PropValue) {
        match value {
            PropValue::Expr(it) => self.expr(it),
            PropValue::Nested(props, _) => props.iter().for_each(|it| self.prop_value(&it.value)),
            PropValue::Dashes(items, _) => self.exprs(items),
            PropValue::Block(text) => self.template(text),
            PropValue::Missing | PropValue::Word(_) => {}
        }
    }

    fn expr(&mut self, expr: &Expr) {
        // Whatever is inside has a use of its own, except for the last statements of bodies.
        let valued = std::mem::replace(&mut self.valued, Valued::Yes);
        match &expr.kind {
            ExprKind::Missing
            | ExprKind::Null
            | ExprKind::Bool(_)
            | ExprKind::Number(_)
            | ExprKind::Duration(_)
            | ExprKind::Break => {}
            ExprKind::Text(text) => self.template(text),
            ExprKind::Name(name) => self.used(name, expr.range, RefKind::Value),
            ExprKind::Member { of, .. } => self.expr(of),
            ExprKind::Index { of, index } => {
                self.expr(of);
                self.expr(index);
            }
            ExprKind::List { items, .. } => self.exprs(items),
            ExprKind::Record(fields) => self.exprs(fields.iter().map(|it| &it.value)),
            ExprKind::Not(it) | ExprKind::Neg(it) => self.expr(it),
            ExprKind::Binary { lhs, rhs, .. } => {
                self.expr(lhs);
                self.expr(rhs);
            }
            ExprKind::Judge { text, bare } => {
                let seq = self.next();
                self.judged.push((seq, self.scope));
                if let Some(bare) = bare {
                    self.used(&bare.name, bare.range, RefKind::Bare);
                }
                self.template(text);
            }
            ExprKind::Session(it) => {
                self.session(it, expr.range);
                if let Some(name) = &it.name {
                    self.bound(name, valued, None);
                }
            }
            ExprKind::DoCall { callee, args } => {
                self.args(args);
                if let Some(callee) = callee {
                    self.used(&callee.name, callee.range, RefKind::Do);
                }
            }
            ExprKind::Call { callee, args } => {
                self.args(args);
                if let Some(callee) = callee {
                    self.used(&callee.name, callee.range, RefKind::Call);
                }
            }
            ExprKind::Arrow(steps) => self.exprs(steps),
            ExprKind::Pipeline { source, stages } => {
                self.expr(source);
                stages.iter().for_each(|it| self.stage(it));
            }
            ExprKind::Do(body) => {
                self.last = valued;
                self.body(body, Kind::default());
            }
            ExprKind::Parallel { mods, body } => {
                self.mods(mods);
                let kind = Kind {
                    parallel: true,
                    ..Kind::default()
                };
                self.within(body.range, kind, None, |walk| {
                    for stmt in &body.stmts {
                        walk.valued = valued;
                        walk.branch(stmt);
                    }
                });
                self.valued = Valued::Yes;
            }
            ExprKind::For(it) => self.for_loop(it, expr.range, valued),
            ExprKind::Repeat {
                count,
                index,
                mods,
                body,
            } => {
                self.expr(count);
                self.mods(mods);
                self.within(expr.range, LOOP, None, |walk| {
                    walk.opt_def(index, DefKind::Index, expr.range);
                    walk.last = valued;
                    walk.stmts(&body.stmts);
                });
            }
            ExprKind::Loop(it) => {
                self.mods(&it.mods);
                self.within(expr.range, LOOP, None, |walk| {
                    walk.opt_def(&it.index, DefKind::Index, expr.range);
                    if let Some(cond) = &it.cond {
                        walk.expr(cond);
                    }
                    walk.last = valued;
                    walk.stmts(&it.body.stmts);
                });
            }
            ExprKind::If { arms, otherwise } => {
                let arm = Kind {
                    group: self.group(),
                    ..Kind::default()
                };
                for (cond, body) in arms {
                    self.expr(cond);
                    self.last = valued;
                    self.body(body, arm);
                }
                if let Some(body) = otherwise {
                    self.last = valued;
                    self.body(body, arm);
                }
            }
            ExprKind::Choice { criteria, options } => {
                self.expr(criteria);
                let arm = Kind {
                    group: self.group(),
                    ..Kind::default()
                };
                for text in options.iter().filter_map(|option| option.text.as_ref()) {
                    self.template(text);
                }
                for option in options {
                    self.last = valued;
                    self.body(&option.body, arm);
                }
            }
            ExprKind::Try {
                body,
                catches,
                finally,
            } => {
                let arm = Kind {
                    group: self.group(),
                    ..Kind::default()
                };
                self.last = valued;
                self.body(body, arm);
                for (name, body) in catches {
                    self.within(body.range, arm, None, |walk| {
                        walk.opt_def(name, DefKind::Catch, body.range);
                        walk.last = valued;
                        walk.stmts(&body.stmts);
                    });
                }
                if let Some(body) = finally {
                    self.body(body, Kind::default());
                }
            }
            ExprKind::Input { name, value, default } => {
                for part in value.iter().chain(default) {
                    self.expr(part);
                }
                self.opt_def(name, DefKind::Input, expr.range);
            }
            ExprKind::Let {
                constant,
                target,
                value,
            } => {
                self.expr(value);
                let kind = if *constant { DefKind::Const } else { DefKind::Let };
                match target {
                    LetTarget::Missing => {}
                    LetTarget::Name(name) => {
                        self.def(name, kind, expr.range);
                        self.bound(name, valued, Some(value));
                    }
                    LetTarget::Record(names) => {
                        for name in names {
                            self.def(name, kind, expr.range);
                            self.bound(name, valued, None);
                        }
                    }
                }
            }
            ExprKind::Output { name, value } => {
                self.expr(value);
                self.def(name, DefKind::Output, expr.range);
                self.bound(name, valued, Some(value));
                if let (ExprKind::Name(from), Some(def)) = (&value.kind, self.defs.last_mut()) {
                    def.promotes = *from == name.name;
                }
            }
            ExprKind::Assign {
                name, path, value, ..
            } => {
                self.expr(value);
                self.exprs(path);
                self.used(&name.name, name.range, RefKind::Assign);
                self.def(name, DefKind::Assigned, expr.range);
            }
            ExprKind::Return { value, .. } | ExprKind::Throw(value) => {
                if let Some(value) = value {
                    self.expr(value);
                }
            }
            ExprKind::Assert { cond, message } => {
                self.expr(cond);
                if let Some(message) = message {
                    self.expr(message);
                }
            }
        }
    }

    /// Notes what the last declaration is bound to.
    fn bound(&mut self, name: &Ident, valued: Valued, value: Option<&Expr>) {
        if let Some(def) = self.defs.last_mut() {
            def.valued = valued;
        }
        let holds = match value.map(|it| &it.kind) {
            Some(
                ExprKind::Call {
                    callee: Some(callee), ..
                }
                | ExprKind::DoCall {
                    callee: Some(callee), ..
                },
            ) => Holds::Call(callee.name),
            Some(ExprKind::Name(other)) if *other != name.name => Holds::Variable(*other),
            _ => return,
        };
        self.held.push((name.name, holds));
    }

    /// A statement directly in `parallel:`, where `name = …` names the branch.
    fn branch(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Expr(Expr {
                kind: ExprKind::Assign {
                    name, path, value, ..
                },
                range,
            }) if path.is_empty() => {
                let valued = std::mem::replace(&mut self.valued, Valued::Yes);
                self.expr(value);
                self.def(name, DefKind::Branch, *range);
                self.bound(name, valued, Some(value));
            }
            _ => self.stmt(stmt),
        }
    }

    fn session(&mut self, session: &Session, range: TextRange) {
        if let Some(agent) = &session.agent {
            let kind = if session.resume {
                RefKind::Resume
            } else {
                RefKind::Agent
            };
            self.used(&agent.name, agent.range, kind);
        }
        if let Some(text) = &session.text {
            self.template(text);
        }
        self.mods(&session.mods);
        self.props(&session.props);
        self.opt_def(&session.name, DefKind::Session, range);
    }

    fn for_loop(&mut self, it: &For, range: TextRange, valued: Valued) {
        self.expr(&it.source);
        self.mods(&it.mods);
        let frame = it.parallel.then(|| {
            let parent = self.scopes[self.scope as usize].frame;
            self.frame(FrameKind::Iteration, Some(parent))
        });
        let kind = Kind {
            hides: true,
            looped: !it.parallel,
            ..Kind::default()
        };
        self.within(range, kind, frame, |walk| {
            walk.opt_def(&it.item, DefKind::Item, range);
            walk.opt_def(&it.index, DefKind::Index, range);
            walk.last = valued;
            walk.stmts(&it.body.stmts);
        });
    }

    fn stage(&mut self, stage: &Stage) {
        let item = Ident {
            name: Name::new("item"),
            range: stage.word,
        };
        match &stage.kind {
            StageKind::Missing | StageKind::Chunks(None) => {}
            StageKind::Chunks(Some(count)) => self.expr(count),
            StageKind::Map(body) | StageKind::Filter(body) => self.within(stage.range, LOOP, None, |walk| {
                walk.def(&item, DefKind::Implicit, stage.range);
                walk.stmts(&body.stmts);
            }),
            StageKind::Pmap(body) => {
                let parent = self.scopes[self.scope as usize].frame;
                let frame = self.frame(FrameKind::Iteration, Some(parent));
                let kind = Kind {
                    looped: false,
                    ..LOOP
                };
                self.within(stage.range, kind, Some(frame), |walk| {
                    walk.def(&item, DefKind::Implicit, stage.range);
                    walk.stmts(&body.stmts);
                });
            }
            StageKind::Reduce { params, body } => self.within(stage.range, LOOP, None, |walk| {
                for param in params {
                    walk.def(param, DefKind::Reduce, stage.range);
                }
                walk.stmts(&body.stmts);
            }),
        }
    }
}

/// A sequential loop's body, or a pipeline stage's.
const LOOP: Kind = Kind {
    hides: true,
    looped: true,
    group: 0,
    parallel: false,
};
