//! From the program as checked to the [`Bundle`] that a run executes.
//!
//! Whether a name in `{…}`, in a discretion or in a list is a value or mere text is decided here, by what the checks resolved it
//! to; everything else about names is left to the machine.

mod expr;
mod props;

use std::sync::Arc;

use indexmap::IndexMap;
use prose_model::codes::Severity;
use prose_model::{
    Agent, BUNDLE_VERSION, Block, Bundle, BundleFile, Digest, Import, InputContract, Name, Node, Op, Program,
    SourceRange, StmtId,
};
use prose_syntax::{TextRange, TextSize};
use rustc_hash::FxHashMap;
use sha2::{Digest as _, Sha256};

pub(crate) use props::persist;

use crate::hir::*;
use crate::resolve::{Resolved, Resolver};
use crate::scopes::Scopes;
use crate::signature::{is_default, runs};
use crate::symbols::{ProgramScope, Site};
use crate::{Chunk, Db, Diagnostic, FileState, SourceFile, queries};

/// Lowers a file and everything it can call. Fails with the errors of the file and of the local files it uses; with none when
/// the file has no text.
pub fn bundle(db: &dyn Db, file: SourceFile) -> Result<Arc<Bundle>, Vec<Diagnostic>> {
    if file.state(db) != FileState::Text {
        return Err(Vec::new());
    }
    let mut files = vec![file];
    files.extend(queries::program_scope(db, file).used.iter().copied());
    let errors: Vec<Diagnostic> = files
        .iter()
        .flat_map(|it| crate::diagnostics(db, *it))
        .filter(|it| it.severity == Severity::Error)
        .collect();
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut assembly = Assembly {
        db,
        files,
        programs: Vec::new(),
        of_file: FxHashMap::default(),
    };
    assembly.program(file, None);
    let files: Vec<BundleFile> = assembly.files.iter().map(|it| bundle_file(db, *it)).collect();
    let mut whole = Sha256::new();
    for file in &files {
        whole.update(file.path.as_bytes());
        whole.update([0]);
        whole.update(file.text.as_bytes());
        whole.update([0]);
    }
    Ok(Arc::new(Bundle {
        version: BUNDLE_VERSION,
        entry: 0,
        programs: assembly.programs,
        files,
        digest: hex(whole),
    }))
}

fn bundle_file(db: &dyn Db, file: SourceFile) -> BundleFile {
    let text = file.text(db);
    let mut hash = Sha256::new();
    hash.update(text.as_bytes());
    BundleFile {
        path: file.path(db).to_string(),
        digest: hex(hash),
        text,
    }
}

fn hex(hash: Sha256) -> Digest {
    use std::fmt::Write as _;
    let bytes = hash.finalize();
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(out, "{byte:02x}");
    }
    Digest::from(out)
}

struct Assembly<'a> {
    db: &'a dyn Db,
    files: Vec<SourceFile>,
    programs: Vec<Program>,
    of_file: FxHashMap<SourceFile, usize>,
}

impl<'a> Assembly<'a> {
    /// Lowers a file as a program, with all that it imports, and gives its index.
    fn program(&mut self, file: SourceFile, target: Option<&str>) -> usize {
        if let Some(index) = self.of_file.get(&file) {
            return *index;
        }
        let db = self.db;
        let index = self.programs.len();
        self.of_file.insert(file, index);
        let path = file.path(db);
        let scope = queries::program_scope(db, file);
        let name = target
            .and_then(crate::paths::default_name)
            .or_else(|| crate::paths::default_name(&path));
        let mut namespace = target.map(crate::paths::namespace).unwrap_or_default();
        // Two files of one name must not share ids and memory.
        let taken = self
            .programs
            .iter()
            .filter(|it| it.namespace == namespace)
            .count();
        if target.is_some() && taken > 0 {
            namespace = format!("{namespace}-{}", index + 1);
        }
        self.programs.push(Program {
            name: name.map(Name::from).unwrap_or_default(),
            namespace: namespace.clone(),
            file: self.file_index(file),
            inputs: Vec::new(),
            outputs: scope.own.outputs.iter().map(|it| (*it).into()).collect(),
            agents: IndexMap::new(),
            blocks: IndexMap::new(),
            imports: IndexMap::new(),
            body: Vec::new(),
        });

        let prefix = if target.is_some() {
            format!("{namespace}::")
        } else {
            String::new()
        };
        let mut lowered = self.own(file, scope, &prefix);
        // Those of used files come after the file's own, in the order of the files.
        let mut sites: Vec<Site> = scope
            .agents
            .values()
            .map(|it| it.site)
            .chain(scope.blocks.values().map(|it| it.site))
            .collect();
        sites.sort_by_key(|it| (self.file_index(it.file), position(db, *it), it.def));
        for site in sites {
            self.contributed(site, scope, &prefix, &mut lowered);
        }

        let mut imports: Vec<(&crate::Name, &crate::symbols::ImportEntry)> =
            scope.own.imports.iter().collect();
        imports.sort_by_key(|(_, it)| it.site.map(|site| (position(db, site), site.def)));
        let mut resolved = IndexMap::new();
        for (name, it) in imports {
            let used = scope.files.get(&it.target).copied().flatten();
            let used = used.filter(|used| used.state(db) == FileState::Text && self.files.contains(used));
            let program = used.map(|used| self.program(used, Some(&it.target)));
            resolved.insert(
                Name::from(*name),
                Import {
                    target: it.target.clone(),
                    program,
                },
            );
        }

        let program = &mut self.programs[index];
        program.inputs = lowered.inputs;
        program.agents = lowered.agents;
        program.blocks = lowered.blocks;
        program.body = lowered.body;
        program.imports = resolved;
        index
    }

    fn file_index(&self, file: SourceFile) -> u32 {
        self.files.iter().position(|it| *it == file).unwrap_or(0) as u32
    }

    /// Everything a file itself declares and runs.
    fn own(&self, file: SourceFile, scope: &ProgramScope, prefix: &str) -> Lowered {
        let mut out = Lowered::default();
        let chunks = file.chunks(self.db);
        let mut leading = true;
        for (index, chunk) in chunks.iter().enumerate() {
            let body = queries::body(self.db, *chunk);
            let mut lowerer = self.lowerer(file, index, *chunk, scope, scope, prefix);
            for stmt in &body.stmts {
                lowerer.definitions(stmt, &mut out);
                if let StmtKind::Expr(it) = &stmt.kind {
                    inputs(it, leading, &mut out.inputs);
                    leading &= !runs(it);
                    let id = lowerer.root_id("main", out.body.len());
                    out.body.push(lowerer.expr(it, &id));
                }
            }
        }
        out
    }

    /// An agent or block that a used file contributes.
    fn contributed(&self, site: Site, entry: &ProgramScope, prefix: &str, out: &mut Lowered) {
        let Some(index) = position(self.db, site) else {
            return;
        };
        let (index, chunk) = (index as usize, site.chunk);
        let scope = queries::program_scope(self.db, site.file);
        let body = queries::body(self.db, chunk);
        let mut lowerer = self.lowerer(site.file, index, chunk, scope, entry, prefix);
        let mut found = Lowered::default();
        for stmt in &body.stmts {
            lowerer.definitions(stmt, &mut found);
        }
        let name = &queries::scopes(self.db, chunk).def(site.def).name;
        let lowered = Name::from(*name);
        if let Some(agent) = found.agents.swap_remove(&lowered)
            && entry.agents.get(name).is_some_and(|it| it.site == site)
        {
            out.agents.entry(lowered.clone()).or_insert(agent);
        }
        if let Some(block) = found.blocks.swap_remove(&lowered)
            && entry.blocks.get(name).is_some_and(|it| it.site == site)
        {
            out.blocks.entry(lowered).or_insert(block);
        }
    }

    fn lowerer<'b>(
        &self,
        file: SourceFile,
        index: usize,
        chunk: Chunk,
        scope: &ProgramScope,
        entry: &'b ProgramScope,
        prefix: &'b str,
    ) -> Lowerer<'b> {
        let scopes = queries::scopes(self.db, chunk);
        Lowerer {
            file: self.file_index(file),
            start: file.starts(self.db).get(index).copied().unwrap_or_default(),
            text: (**chunk.text(self.db)).into(),
            names: resolutions(file, (chunk, index as u32), scopes, scope),
            entry,
            prefix,
        }
    }
}

/// Where the chunk of a definition stands in its file.
fn position(db: &dyn Db, site: Site) -> Option<u32> {
    queries::positions(db, site.file).get(&site.chunk).copied()
}

/// What each use of a name in a chunk was resolved to, by its range.
fn resolutions(
    file: SourceFile,
    (chunk, at): (Chunk, u32),
    scopes: &Scopes,
    program: &ProgramScope,
) -> FxHashMap<TextRange, Resolved> {
    let resolver = Resolver {
        file,
        chunk,
        at,
        scopes,
        program,
    };
    scopes
        .refs
        .iter()
        .map(|it| (it.range, resolver.resolve(it)))
        .collect()
}

#[derive(Default)]
struct Lowered {
    inputs: Vec<InputContract>,
    agents: IndexMap<Name, Agent>,
    blocks: IndexMap<Name, Block>,
    body: Vec<Node>,
}

/// The contract's inputs in a statement of the top level.
fn inputs(expr: &Expr, leading: bool, out: &mut Vec<InputContract>) {
    if let ExprKind::Input {
        name: Some(name),
        value,
        default,
    } = &expr.kind
    {
        let value = value.as_deref();
        let prompt = match value.map(|it| &it.kind) {
            Some(ExprKind::Text(text) | ExprKind::Judge { text, .. }) => text.source(),
            _ => String::new(),
        };
        let has_default = default.is_some() || value.is_some_and(is_default);
        match out.iter_mut().find(|it| it.name == name.name.as_str()) {
            // The same input met in several branches is one in the contract.
            Some(known) => known.has_default |= has_default,
            None => out.push(InputContract {
                name: name.name.into(),
                prompt,
                leading,
                has_default,
            }),
        }
    }
    each_child(expr, &mut |child| match child {
        Child::Expr(it) => inputs(it, false, out),
        Child::Body(it) => {
            for stmt in &it.stmts {
                if let StmtKind::Expr(it) = &stmt.kind {
                    inputs(it, false, out);
                }
            }
        }
    });
}

/// Lowers the parts of one chunk.
struct Lowerer<'a> {
    file: u32,
    start: TextSize,
    text: Arc<str>,
    names: FxHashMap<TextRange, Resolved>,
    /// What the program sees that the parts will be part of.
    entry: &'a ProgramScope,
    /// Makes ids of other programs than the entry's their own.
    prefix: &'a str,
}

/// Gives ids to the parts of a node, in order.
struct Parts<'a> {
    of: &'a str,
    next: usize,
}

impl Parts<'_> {
    fn next(&mut self) -> String {
        let index = self.next;
        self.next += 1;
        format!("{}.{index}", self.of)
    }
}

fn parts(of: &str) -> Parts<'_> {
    Parts { of, next: 0 }
}

impl Lowerer<'_> {
    fn src(&self, range: TextRange) -> SourceRange {
        let range = range + self.start;
        SourceRange {
            file: self.file,
            start: range.start().into(),
            end: range.end().into(),
        }
    }

    fn root_id(&self, declaration: &str, index: usize) -> String {
        format!("{}{declaration}/{index}", self.prefix)
    }

    fn node(&self, id: &str, range: TextRange, op: Op) -> Node {
        Node {
            id: StmtId::from(id),
            src: self.src(range),
            op,
        }
    }

    /// What is written at a range, with blanks as a formatter would put them, so that formatting changes no program.
    fn source(&self, range: TextRange) -> String {
        let text = self.text.get(range.start().into()..range.end().into());
        spaced(text.unwrap_or_default())
    }

    /// Agents and blocks of a statement, at any depth: they are global wherever they stand.
    fn definitions(&mut self, stmt: &Stmt, out: &mut Lowered) {
        match &stmt.kind {
            StmtKind::Use(_) | StmtKind::SkillImport { .. } => {}
            StmtKind::Agent(it) => {
                let Some(name) = &it.name else { return };
                let id = self.root_id(&format!("agent:{}", name.name), 0);
                let agent = Agent {
                    name: name.name.into(),
                    src: self.src(stmt.range),
                    persist: persist(&it.props),
                    props: self.props(&it.props, &[], &id),
                };
                out.agents.entry(name.name.into()).or_insert(agent);
            }
            StmtKind::Block(it) => {
                let Some(name) = &it.name else { return };
                let body = self.stmts(&it.body.stmts, |lowerer, index| {
                    lowerer.root_id(&format!("block:{}", name.name), index)
                });
                let block = Block {
                    name: name.name.into(),
                    src: self.src(stmt.range),
                    params: it.params.iter().map(|it| it.name.into()).collect(),
                    max_depth: modifier(&it.mods, "max_depth").and_then(props::whole_number),
                    body,
                };
                out.blocks.entry(name.name.into()).or_insert(block);
                it.body.stmts.iter().for_each(|it| self.definitions(it, out));
            }
            StmtKind::Expr(it) => self.definitions_in(it, out),
        }
    }

    fn definitions_in(&mut self, expr: &Expr, out: &mut Lowered) {
        each_child(expr, &mut |child| match child {
            Child::Expr(it) => self.definitions_in(it, out),
            Child::Body(it) => it.stmts.iter().for_each(|it| self.definitions(it, out)),
        });
    }

    /// The executable ones of some statements; the index counts only those.
    fn stmts(&mut self, stmts: &[Stmt], id: impl Fn(&Self, usize) -> String) -> Vec<Node> {
        let mut out = Vec::new();
        for stmt in stmts {
            if let StmtKind::Expr(it) = &stmt.kind {
                let id = id(self, out.len());
                out.push(self.expr(it, &id));
            }
        }
        out
    }

    fn body(&mut self, body: &Body, id: &str) -> Vec<Node> {
        self.stmts(&body.stmts, |_, index| format!("{id}.{index}"))
    }
}

/// The tokens of an expression with the usual blanks between them, on one line as far as its texts allow.
fn spaced(text: &str) -> String {
    use prose_syntax::SyntaxKind::*;
    let root = prose_syntax::parse(text).syntax();
    let mut out = String::with_capacity(text.len());
    let (mut before, mut unary) = (EOF, true);
    let mut comma = false;
    for token in root.descendants_with_tokens().filter_map(|it| it.into_token()) {
        let kind = token.kind();
        if kind.is_trivia() {
            continue;
        }
        let closes = matches!(kind, R_PAREN | R_BRACK | R_BRACE);
        if std::mem::take(&mut comma) && !closes {
            out.push(',');
        }
        if kind == COMMA {
            (comma, before, unary) = (true, kind, true);
            continue;
        }
        let blank = match (before, kind) {
            (EOF | DOT | L_PAREN | L_BRACK, _) | (_, COLON | DOT | R_PAREN | R_BRACK) => false,
            (COMMA, R_BRACE) => true,
            (L_BRACE, R_BRACE) => false,
            (L_BRACE | COMMA | COLON, _) | (_, R_BRACE) => true,
            // A call and an index touch what they belong to, and so does a sign.
            (_, L_PAREN | L_BRACK) => {
                let list = token.parent().map(|it| it.kind());
                !matches!(list, Some(ARG_LIST | PARAM_LIST | INDEX_EXPR))
            }
            (MINUS, _) => !unary,
            _ => true,
        };
        if blank {
            out.push(' ');
        }
        out.push_str(token.text());
        // Whether a minus that comes next, or this one, is a sign.
        unary = match kind {
            MINUS => unary || before == MINUS,
            _ => !matches!(
                kind,
                IDENT
                    | NUMBER
                    | DURATION
                    | STRING
                    | TRIPLE_STRING
                    | DISCRETION
                    | R_PAREN
                    | R_BRACK
                    | R_BRACE
                    | TRUE_KW
                    | FALSE_KW
                    | NULL_KW
            ),
        };
        before = kind;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::spaced;

    #[test]
    fn blanks_of_a_label_are_the_usual_ones() {
        for (written, label) in [
            ("a", "a"),
            ("xs[ 0 ] . y", "xs[0].y"),
            ("a+b  -1", "a + b - 1"),
            ("a- -1", "a - -1"),
            ("[ 1,-2 ,{a ,b:3,},]", "[1, -2, { a, b: 3 }]"),
            ("f( k:1 )", "f(k: 1)"),
            ("not(a==b)", "not (a == b)"),
            ("loop until**x**(max:2)as i:", "loop until **x** (max: 2) as i:"),
            ("loop():", "loop ():"),
            ("{}", "{}"),
            ("session  \"a  b\"", "session \"a  b\""),
        ] {
            assert_eq!(spaced(written), label, "{written}");
        }
    }
}
