//! Which parameter an argument of a call is for: the checks, the editor and the machine have to say the same.

/// For each argument, given by its name if it has one, the index of the parameter that it is for; none where there is no such
/// parameter. One without a name is for the first parameter that no name is given for and no argument before it is for.
pub fn assign(params: &[&str], args: &[Option<&str>]) -> Vec<Option<usize>> {
    let mut open = (0..params.len()).filter(|at| !args.contains(&Some(params[*at])));
    args.iter()
        .map(|name| match name {
            Some(name) => params.iter().position(|param| param == name),
            None => open.next(),
        })
        .collect()
}

/// The name under which a program takes an argument: its own, or that of the variable which is all that the argument is, where
/// the program has an input of that name (as a field of a record that is a name alone).
pub fn input_name<'a>(inputs: &[&str], own: Option<&'a str>, variable: Option<&'a str>) -> Option<&'a str> {
    own.or(variable.filter(|name| inputs.contains(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_first_then_places() {
        let assigned = |args: &[Option<&str>]| assign(&["a", "b", "c"], args);
        assert_eq!(assigned(&[None, None]), [Some(0), Some(1)]);
        assert_eq!(
            assigned(&[Some("c"), None, None, None]),
            [Some(2), Some(0), Some(1), None]
        );
        assert_eq!(assigned(&[None, Some("a")]), [Some(1), Some(0)]);
        assert_eq!(assigned(&[Some("x"), None]), [None, Some(0)]);
    }

    #[test]
    fn a_variable_alone_is_the_input_of_its_name() {
        assert_eq!(input_name(&["a", "tone"], None, Some("tone")), Some("tone"));
        assert_eq!(input_name(&["a"], None, Some("tone")), None);
        assert_eq!(input_name(&["a", "tone"], Some("a"), Some("tone")), Some("a"));
    }
}
