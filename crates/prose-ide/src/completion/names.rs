//! Declared names: variables, agents, blocks, programs, and arguments of calls.

use prose_hir::{DefKind, VisibleName};
use prose_syntax::ast::{self, AstNode, HasProperties};

use super::{Completions, Proposal, Rank, snippet_text};
use crate::types::{CompletionKind, MarkupKind};
use crate::{describe, names};

impl Completions<'_> {
    /// Variables that may have a value here.
    pub(super) fn variables(&mut self, rank: Rank) {
        for name in self.visible() {
            let proposal = self.named(&name, rank);
            self.add(proposal);
        }
    }

    /// Variables in sight that no unfinished statement declares.
    pub(super) fn visible(&self) -> Vec<VisibleName> {
        let mut names = names::variables(self.db, self.source, self.context.lookup);
        names.retain(|name| match &name.definition {
            Some(it) if !name.kind.is_scoped() && it.source() == self.source => !self
                .context
                .unfinished
                .iter()
                .any(|line| line.contains_range(it.range)),
            _ => true,
        });
        names
    }

    /// What may stand in `context:`: variables, and agents for their memory.
    pub(super) fn context_values(&mut self) {
        self.variables(Rank::First);
        for def in names::globals(self.db, self.source, DefKind::Agent) {
            if self.is_persistent(&def) {
                let detail = format!("memory of {}", def.name);
                let proposal = self.named(&def, Rank::Last).detail(detail);
                self.add(proposal);
            }
        }
    }

    fn is_persistent(&self, agent: &VisibleName) -> bool {
        agent
            .definition
            .as_ref()
            .and_then(|it| names::node(self.db, it))
            .and_then(ast::AgentDef::cast)
            .and_then(|it| it.property("persist"))
            .is_some_and(|it| describe::property_value(&it).is_none_or(|value| value != "false"))
    }

    /// A value: variables, programs that can be called, and what begins an expression.
    pub(super) fn expression(&mut self, heads: bool) {
        self.variables(Rank::Near);
        if heads {
            self.programs();
            self.value_keywords();
        }
        self.constants();
    }

    pub(super) fn agents(&mut self) {
        for def in names::globals(self.db, self.source, DefKind::Agent) {
            let proposal = self.named(&def, Rank::First);
            self.add(proposal);
        }
    }

    /// Blocks behind `do`; with their arguments where none are there yet.
    pub(super) fn blocks(&mut self, with_programs: bool) {
        for def in names::globals(self.db, self.source, DefKind::Block) {
            let params = prose_hir::block_params(self.db, self.source, &def.name).unwrap_or_default();
            let params: Vec<String> = params.iter().map(|it| it.to_string()).collect();
            let proposal = self.named(&def, Rank::First);
            let proposal = self.call(proposal, &def.name, &params, |name| {
                (name.to_owned(), name.to_owned())
            });
            self.add(proposal);
        }
        if with_programs {
            for def in names::globals(self.db, self.source, DefKind::Import) {
                let proposal = self.program(&def, Rank::Far);
                self.add(proposal);
            }
        }
    }

    pub(super) fn programs(&mut self) {
        for def in names::globals(self.db, self.source, DefKind::Import) {
            let proposal = self.program(&def, Rank::Far);
            self.add(proposal);
        }
    }

    fn program(&self, def: &VisibleName, rank: Rank) -> Proposal {
        let inputs = self.inputs_of(def).unwrap_or_default();
        let proposal = self.named(def, rank);
        self.call(proposal, &def.name, &inputs, |name| {
            (format!("{name}: {name}"), name.to_owned())
        })
    }

    /// The inputs of the program an import leads to, if it is known.
    pub(super) fn inputs_of(&self, import: &VisibleName) -> Option<Vec<String>> {
        let contract = describe::contract(self.db, import.definition.as_ref()?)?;
        Some(contract.inputs.iter().map(|(name, _)| name.to_string()).collect())
    }

    /// Adds arguments to a callee. The plain form, for clients without snippets, is the name alone: placeholders as
    /// text would have to be deleted.
    fn call(
        &self,
        proposal: Proposal,
        name: &str,
        params: &[String],
        argument: impl Fn(&str) -> (String, String),
    ) -> Proposal {
        if self.followed_by('(') || params.is_empty() {
            return proposal;
        }
        let arguments: Vec<String> = params
            .iter()
            .enumerate()
            .map(|(i, param)| {
                let (whole, placeholder) = argument(param);
                let before = whole.strip_suffix(placeholder.as_str()).unwrap_or_default();
                format!(
                    "{}${{{}:{}}}",
                    snippet_text(before),
                    i + 1,
                    snippet_text(&placeholder)
                )
            })
            .collect();
        proposal.snippet(format!("{}({})", snippet_text(name), arguments.join(", ")))
    }

    /// An argument: names of parameters that were not given yet, and values.
    pub(super) fn arguments(&mut self, callee: &str, present: &[String]) {
        let names = names::globals(self.db, self.source, DefKind::Import)
            .into_iter()
            .find(|it| it.name == callee)
            .and_then(|it| self.inputs_of(&it));
        for name in names.into_iter().flatten() {
            if !present.contains(&name) {
                let colon = if self.followed_by(':') { "" } else { ": " };
                let proposal = Proposal::new(name.clone(), CompletionKind::Field, Rank::First)
                    .detail("input")
                    .insert(format!("{name}{colon}"));
                self.add(proposal);
            }
        }
        self.variables(Rank::Near);
        self.constants();
    }

    pub(super) fn named(&self, def: &VisibleName, rank: Rank) -> Proposal {
        let mut proposal = Proposal::new(
            def.name.as_str(),
            CompletionKind::Symbol(names::symbol_kind(def.kind)),
            rank,
        )
        .detail(describe::detail(self.db, def));
        if let Some(definition) = &def.definition {
            proposal = proposal.doc(describe::render(
                &describe::definition(self.db, definition),
                MarkupKind::Markdown,
            ));
        }
        proposal
    }
}
