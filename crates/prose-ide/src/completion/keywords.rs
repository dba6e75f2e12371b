//! Keywords where the grammar has them.

use prose_model::vocabulary::{self, Keyword, KeywordRole};

use super::{Completions, Proposal, Rank};
use crate::types::CompletionKind;

impl Completions<'_> {
    /// The start of a statement.
    pub(super) fn statement(&mut self, top_level: bool, branches: bool, continuations: &[&'static str]) {
        for word in continuations {
            if let Some(keyword) = vocabulary::keyword(word) {
                self.keyword(keyword, Rank::First);
            }
        }
        for keyword in vocabulary::KEYWORDS {
            let fits = match keyword.word {
                // Declarations for the whole program; `import`, `return`, `break` and `assert` are legacy or beyond the grammar.
                "agent" | "block" | "use" => top_level,
                "let" | "const" | "input" | "output" => !branches,
                "import" | "return" | "break" | "assert" => false,
                _ => matches!(keyword.role, KeywordRole::Statement | KeywordRole::Construct),
            };
            if fits {
                self.keyword(keyword, Rank::Keyword);
            }
        }
        // What can be assigned to.
        for def in self.visible() {
            if !def.kind.is_scoped() && def.kind != prose_hir::DefKind::Const {
                let proposal = self.named(&def, Rank::Near);
                self.add(proposal);
            }
        }
        self.programs();
    }

    pub(super) fn option(&mut self) {
        if let Some(keyword) = vocabulary::keyword("option") {
            self.keyword(keyword, Rank::First);
        }
    }

    pub(super) fn keywords(&mut self, words: &[&str]) {
        for keyword in words.iter().filter_map(|word| vocabulary::keyword(word)) {
            self.keyword(keyword, Rank::First);
        }
    }

    /// What begins a value besides names.
    pub(super) fn value_keywords(&mut self) {
        for keyword in vocabulary::KEYWORDS
            .iter()
            .filter(|it| it.role == KeywordRole::Construct)
        {
            self.keyword(keyword, Rank::Keyword);
        }
    }

    pub(super) fn constants(&mut self) {
        for keyword in vocabulary::KEYWORDS
            .iter()
            .filter(|it| it.role == KeywordRole::Constant)
        {
            self.keyword(keyword, Rank::Last);
        }
    }

    fn keyword(&mut self, keyword: &'static Keyword, rank: Rank) {
        let mut proposal = Proposal::new(keyword.word, CompletionKind::Keyword, rank)
            .detail(keyword.usage)
            .doc(keyword.doc);
        // On a line that goes on, only the word is missing.
        let at_end = self.context.followed_by.is_none() || self.context.followed_by == Some('#');
        let body = "\n  $0";
        let snippet = match keyword.word {
            "session" => Some("session \"${1:task}\"$0".to_owned()),
            "resume" => Some("resume: ${1:agent}\n  prompt: \"${2:task}\"$0".to_owned()),
            "agent" => Some("agent ${1:name}:\n  model: ${2:sonnet}\n  prompt: \"$3\"$0".to_owned()),
            "block" => Some(format!("block ${{1:name}}(${{2}}):{body}")),
            "let" | "const" => Some(format!("{} ${{1:name}} = $0", keyword.word)),
            "output" => Some("output ${1:name} = $0".to_owned()),
            "input" => Some("input ${1:name}: \"${2:prompt}\"$0".to_owned()),
            "use" => Some("use \"${1:program}\"$0".to_owned()),
            "parallel" => Some(format!("parallel:{body}")),
            "for" => Some(format!("for ${{1:item}} in ${{2:items}}:{body}")),
            "repeat" => Some(format!("repeat ${{1:3}}:{body}")),
            "loop" => Some(format!("loop until **${{1:condition}}** (max: ${{2:5}}):{body}")),
            "if" | "elif" => Some(format!("{} **${{1:condition}}**:{body}", keyword.word)),
            "else" | "try" | "finally" => Some(format!("{}:{body}", keyword.word)),
            "catch" => Some(format!("catch as ${{1:err}}:{body}")),
            "choice" => Some("choice **${1:criteria}**:\n  option \"${2:label}\":\n    $0".to_owned()),
            "option" => Some(format!("option \"${{1:label}}\":{body}")),
            "throw" => Some("throw \"${1:message}\"$0".to_owned()),
            "map" | "filter" | "pmap" => Some(format!("{}:{body}", keyword.word)),
            "reduce" => Some(format!("reduce(${{1:acc}}, ${{2:item}}):{body}")),
            "chunks" => Some("chunks(${1:10})$0".to_owned()),
            _ => None,
        };
        if let Some(snippet) = snippet.filter(|_| at_end) {
            proposal = proposal.snippet(snippet);
        }
        self.add(proposal);
    }
}
