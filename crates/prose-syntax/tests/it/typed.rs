//! The typed view.

use prose_syntax::{
    ast::{
        self, AstNode, Expr, HasBody, HasModifiers, HasProperties, LiteralKind, PipeOpKind, PropertyValue,
        Stmt, Target,
    },
    parse,
};

fn first(text: &str) -> Stmt {
    parse(text).tree().statements().next().unwrap()
}

fn first_expr(text: &str) -> Expr {
    match first(text) {
        Stmt::Expr(it) => it.expr().unwrap(),
        Stmt::Let(it) => it.value().unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn session_parts() {
    let Expr::Session(it) = first_expr("session n: worker\n  prompt: \"p\"\n  context: [a]\n") else {
        panic!()
    };
    assert_eq!(it.name().unwrap().text(), "n");
    assert_eq!(it.agent().unwrap().text(), "worker");
    assert!(it.text().is_none());
    let keys: Vec<String> = it.properties().map(|it| it.key().unwrap().text()).collect();
    assert_eq!(keys, ["prompt", "context"]);
    let Some(PropertyValue::Expr(Expr::List(list))) = it.property("context").unwrap().value() else {
        panic!()
    };
    assert_eq!(list.elements().count(), 1);

    let Expr::Session(it) = first_expr("session \"x\" context: y\n  model: opus\n") else {
        panic!()
    };
    assert_eq!(it.text().unwrap().string().unwrap().text(), "x");
    assert_eq!(
        it.properties().count(),
        2,
        "both those on the line and those below"
    );

    let Expr::Session(it) = first_expr("session \"x\" (retry: 3)\n") else {
        panic!()
    };
    assert!(it.modifier("retry").is_some());
}

#[test]
fn nested_permissions() {
    let Stmt::Agent(it) = first("agent a:\n  permissions:\n    read: [\"x\"]\n    bash: deny\n") else {
        panic!()
    };
    let nested = it.property("permissions").unwrap().nested().unwrap();
    assert_eq!(nested.properties().count(), 2);
    assert_eq!(
        nested.property("bash").unwrap().expr().unwrap().to_string(),
        "deny"
    );
}

#[test]
fn assignments_and_bindings() {
    let Stmt::Assign(it) = first("a.b = c.d\n") else {
        panic!()
    };
    assert!(matches!(it.target(), Some(Target::Field(_))));
    assert_eq!(it.value().unwrap().to_string(), "c.d");
    let Stmt::Assign(it) = first("n_{v} = 1\n") else {
        panic!()
    };
    let Some(Target::Computed(target)) = it.target() else {
        panic!()
    };
    assert_eq!(target.base().unwrap().text(), "n_");
    assert_eq!(target.key().unwrap().to_string(), "v");
    let Stmt::Let(it) = first("const { a, b } = f(x: 1)\n") else {
        panic!()
    };
    assert!(it.is_const());
    assert_eq!(it.pattern().unwrap().names().count(), 2);
    let Stmt::Output(it) = first("output a + b\n") else {
        panic!()
    };
    assert!(it.name().is_none() && it.value().is_some());
}

#[test]
fn constructs() {
    let Expr::For(it) = first_expr("parallel for x, i in xs (max: 2):\n  do f\n") else {
        panic!()
    };
    assert!(it.parallel_token().is_some() && it.modifier("max").is_some());
    assert_eq!(
        (it.item().unwrap().text(), it.index().unwrap().text()),
        ("x".into(), "i".into())
    );
    assert_eq!(it.collection().unwrap().to_string(), "xs");
    assert_eq!(it.body().unwrap().statements().count(), 1);

    let Expr::Loop(it) = first_expr("loop until a (max: 2) as i:\n  do f\n") else {
        panic!()
    };
    assert!(it.until_token().is_some() && it.while_token().is_none());
    assert_eq!(
        (it.condition().unwrap().to_string(), it.index().unwrap().text()),
        ("a".into(), "i".into())
    );

    let Expr::If(it) = first_expr("if a:\n  do f\nelif b:\n  do g\nelse:\n  do h\n") else {
        panic!()
    };
    assert_eq!(it.condition().unwrap().to_string(), "a");
    assert_eq!(it.elifs().next().unwrap().condition().unwrap().to_string(), "b");
    assert!(it.else_clause().unwrap().body().is_some());

    let Expr::Choice(it) = first_expr("choice **which one**:\n  option \"a\":\n    do f\n") else {
        panic!()
    };
    assert_eq!(it.options()[0].label().unwrap().to_string(), "\"a\"");

    let Expr::Try(it) = first_expr("try:\n  do f\ncatch as e:\n  throw\nfinally:\n  do g\n") else {
        panic!()
    };
    assert_eq!(it.catch_clause().unwrap().name().unwrap().text(), "e");
    assert!(it.finally_clause().is_some());

    let Expr::Arrow(it) = first_expr("session \"a\" -> session \"b\" -> session \"c\"\n") else {
        panic!()
    };
    assert_eq!(it.steps().count(), 3);
}

#[test]
fn pipelines() {
    let Expr::Pipe(it) = first_expr("let x = xs | map: item | reduce(a, b): a + b | chunks(2)\n") else {
        panic!()
    };
    assert_eq!(it.input().unwrap().to_string(), "xs");
    let ops: Vec<_> = it.ops().collect();
    let kinds: Vec<_> = ops.iter().map(|it| it.kind().unwrap()).collect();
    assert_eq!(kinds, [PipeOpKind::Map, PipeOpKind::Reduce, PipeOpKind::Chunks]);
    assert_eq!(ops[1].params().unwrap().params().count(), 2);
    assert_eq!(ops[2].args().unwrap().args().count(), 1);
    assert_eq!(
        ops[0].body().unwrap().statements().next().unwrap().to_string(),
        "item"
    );
}

#[test]
fn operators_indexes_and_literals() {
    let Expr::Bin(it) = first_expr("let x = a[i] - b\n") else {
        panic!()
    };
    assert_eq!(it.op(), Some(ast::BinOp::Sub));
    let Some(Expr::Index(index)) = it.lhs() else {
        panic!()
    };
    assert_eq!(
        (
            index.base().unwrap().to_string(),
            index.index().unwrap().to_string()
        ),
        ("a".into(), "i".into())
    );
    assert_eq!(it.rhs().unwrap().to_string(), "b");
    let Expr::Literal(it) = first_expr("let x = 1.5\n") else {
        panic!()
    };
    assert_eq!(it.kind(), Some(LiteralKind::Number(1.5)));
    let Expr::Object(it) = first_expr("let x = {a, b.c, \"d e\": 1}\n") else {
        panic!()
    };
    let keys: Vec<_> = it.fields().map(|it| it.key_text().unwrap()).collect();
    assert_eq!(keys, ["a", "c", "d e"]);
}

#[test]
fn comments_above_a_statement() {
    let root = parse("# far\n\n# one\n# two\nsession \"x\" # behind\nsession \"y\"\n").tree();
    let mut statements = root.statements();
    let above = |stmt: Stmt| -> Vec<String> {
        ast::leading_comments(stmt.syntax())
            .iter()
            .map(|it| it.text().to_owned())
            .collect()
    };
    assert_eq!(above(statements.next().unwrap()), ["# one", "# two"]);
    assert_eq!(above(statements.next().unwrap()), [""; 0]);
}
