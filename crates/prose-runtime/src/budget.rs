//! What a run may cost in all, and what is left of it.

use prose_agents::SpendLimit;
use prose_model::{RunOptions, Usage};

/// Sums of many small amounts fall short of the exact one by less than this.
const ROUNDING: f64 = 1e-9;

/// The limits of one run, over all processes that drive it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Budget {
    pub(crate) usd: Option<f64>,
    pub(crate) tokens: Option<u64>,
}

impl Budget {
    pub(crate) fn of(options: &RunOptions) -> Budget {
        Budget {
            usd: options.budget_usd,
            tokens: options.budget_tokens,
        }
    }

    /// Takes over what another one sets.
    pub(crate) fn or_of(self, newer: Budget) -> Budget {
        Budget {
            usd: newer.usd.or(self.usd),
            tokens: newer.tokens.or(self.tokens),
        }
    }

    pub(crate) fn is_none(self) -> bool {
        self.usd.is_none() && self.tokens.is_none()
    }

    /// Whether nothing may be begun any more.
    pub(crate) fn is_spent(self, spent: &Usage) -> bool {
        let money = self
            .usd
            .is_some_and(|limit| spent.cost_usd.unwrap_or(0.0) >= limit - ROUNDING);
        money || self.tokens.is_some_and(|limit| tokens(spent) >= limit)
    }

    /// What is left.
    pub(crate) fn rest(self, spent: &Usage) -> SpendLimit {
        SpendLimit {
            usd: self
                .usd
                .map(|limit| (limit - spent.cost_usd.unwrap_or(0.0)).max(0.0)),
            tokens: self.tokens.map(|limit| limit.saturating_sub(tokens(spent))),
        }
    }

    /// Names what is spent and how much of it, and the options that set larger limits.
    pub(crate) fn message(self, spent: &Usage) -> (String, String) {
        let money = self.usd.map(|limit| {
            (
                spent.cost_usd.unwrap_or(0.0) >= limit - ROUNDING,
                format!(
                    "the budget of {} USD is spent: the run has cost {} USD",
                    amount(limit),
                    amount(spent.cost_usd.unwrap_or(0.0))
                ),
                "--budget USD",
            )
        });
        let tokens = self.tokens.map(|limit| {
            (
                tokens(spent) >= limit,
                format!(
                    "the budget of {limit} tokens is spent: the run has used {}",
                    tokens(spent)
                ),
                "--budget-tokens N",
            )
        });
        // The limits that were reached; where a backend stopped a session just before, the first that there is.
        let limits: Vec<_> = [money, tokens].into_iter().flatten().collect();
        let mut reached: Vec<_> = limits.iter().filter(|(reached, ..)| *reached).collect();
        if reached.is_empty() {
            reached.extend(limits.first());
        }
        let options: Vec<&str> = reached.iter().map(|(_, _, option)| *option).collect();
        let message = reached.first().map(|(_, message, _)| message.clone());
        (
            message.unwrap_or_else(|| "the budget is spent".to_owned()),
            options.join(" "),
        )
    }
}

fn tokens(usage: &Usage) -> u64 {
    usage.tokens()
}

/// Dollars without needless digits.
fn amount(dollars: f64) -> String {
    let text = format!("{dollars:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(cost: f64, tokens: u64) -> Usage {
        Usage {
            input_tokens: tokens,
            output_tokens: 0,
            cost_usd: Some(cost),
        }
    }

    #[test]
    fn ten_dimes_are_a_dollar() {
        let budget = Budget {
            usd: Some(1.0),
            tokens: None,
        };
        let spent = (0..10).fold(0.0, |sum, _| sum + 0.1);
        assert!(spent < 1.0 && budget.is_spent(&usage(spent, 0)));
        assert!(!budget.is_spent(&usage(0.99, u64::MAX)));
        assert_eq!(budget.rest(&usage(0.75, 7)).usd, Some(0.25));
        assert_eq!(budget.rest(&usage(2.0, 7)).usd, Some(0.0));
    }

    #[test]
    fn the_message_names_the_limit_that_was_reached() {
        let budget = Budget {
            usd: Some(2.5),
            tokens: Some(100),
        };
        let message = |cost, tokens| budget.message(&usage(cost, tokens));
        let named = |message: &str, options: &str| (message.to_owned(), options.to_owned());
        assert_eq!(
            message(0.5, 120),
            named(
                "the budget of 100 tokens is spent: the run has used 120",
                "--budget-tokens N"
            )
        );
        assert_eq!(
            message(2.5, 12),
            named(
                "the budget of 2.5 USD is spent: the run has cost 2.5 USD",
                "--budget USD"
            )
        );
        assert_eq!(
            message(2.5, 120),
            named(
                "the budget of 2.5 USD is spent: the run has cost 2.5 USD",
                "--budget USD --budget-tokens N"
            )
        );
        assert_eq!(
            message(2.499, 0),
            named(
                "the budget of 2.5 USD is spent: the run has cost 2.499 USD",
                "--budget USD"
            )
        );
        assert_eq!(budget.rest(&usage(0.5, 120)).tokens, Some(0));
    }

    #[test]
    fn a_raised_budget_leaves_the_other_limit() {
        let old = Budget {
            usd: Some(1.0),
            tokens: Some(5),
        };
        let newer = Budget {
            usd: Some(9.0),
            tokens: None,
        };
        assert_eq!(
            old.or_of(newer),
            Budget {
                usd: Some(9.0),
                tokens: Some(5)
            }
        );
    }
}
