use super::*;

fn expand(arguments: &str, item: &str) -> std::result::Result<String, String> {
    let arguments = syn::parse_str(arguments).map_err(|error| error.to_string())?;
    let item = syn::parse_str(item).map_err(|error| error.to_string())?;
    interpreter(&arguments, item)
        .map(|tokens| tokens.to_string().replace(' ', ""))
        .map_err(|error| error.to_string())
}

const KIND: &str = r#"api_version = "example.io/v1", kind = "Widget""#;

#[test]
fn the_written_methods_are_described_in_the_order_of_the_interface() {
    let expanded = expand(
        KIND,
        "impl Interpreter for Widget { fn health() {} #[interpreter(register = false)] #[inline] fn revise() {} }",
    )
    .unwrap();
    let revise = expanded.find("Operation::ReviseReplica,register:false").unwrap();
    let health = expanded.find("Operation::InterpretHealth,register:true").unwrap();
    assert!(revise < health);
    assert!(!expanded.contains("Retain"));
    assert!(
        expanded.contains("#[inline]fnrevise"),
        "other attributes stay, ours goes: {expanded}"
    );
    assert!(expanded.contains(r#"group:"example.io",version:"v1",kind:"Widget""#));
}

#[test]
fn the_only_kind_exports_the_module_and_one_of_several_does_not() {
    let item = "impl popcell_sdk::Interpreter for Widget {}";
    assert!(expand(KIND, item).unwrap().contains("export_interpreters!(Widget)"));
    assert!(
        !expand(&format!("{KIND}, export = false"), item)
            .unwrap()
            .contains("export_interpreters!")
    );
    assert!(
        expand(r#"api_version = "v1", kind = "Pod""#, item)
            .unwrap()
            .contains(r#"group:"",version:"v1""#)
    );
}

#[test]
fn mistakes_are_named() {
    let empty = "impl Interpreter for Widget {}";
    let method = |method: &str| format!("impl Interpreter for Widget {{ {method} }}");
    for (arguments, item, expected) in [
        ("", empty, "`api_version` is missing"),
        (r#"api_version = "example.io/v1""#, empty, "`kind` is missing"),
        (
            r#"apiVersion = "example.io/v1""#,
            empty,
            "expected `api_version`, `kind` or `export`",
        ),
        (
            r#"api_version = "Example/v1", kind = "W""#,
            empty,
            "has to be \"group/version\"",
        ),
        (
            r#"api_version = "/v1", kind = "W""#,
            empty,
            "has to be \"group/version\"",
        ),
        (
            r#"api_version = "example.io/v1/x", kind = "W""#,
            empty,
            "has to be \"group/version\"",
        ),
        (r#"api_version = 1, kind = "W""#, empty, "expected a text in quotes"),
        (r#"api_version = "v1", kind = "a b""#, empty, "`kind` has to be a name"),
        (
            r#"api_version = "v1", api_version = "v1", kind = "W""#,
            empty,
            "given twice",
        ),
        (
            r#"api_version = "v1", kind = "W", register = false"#,
            empty,
            "`register` belongs on a method",
        ),
        (KIND, "impl Widget {}", "belongs on `impl Interpreter for ..`"),
        (KIND, "impl Clone for Widget {}", "belongs on `impl Interpreter for ..`"),
        (KIND, "impl<T> Interpreter for Widget<T> {}", "cannot be generic"),
        (
            KIND,
            &method("fn helth() {}"),
            "`helth` is no operation: expected one of replicas, components, revise",
        ),
        (
            KIND,
            &method("#[interpreter(registered = false)] fn health() {}"),
            "expected `register`",
        ),
        (
            KIND,
            &method("#[interpreter(register = 0)] fn health() {}"),
            "expected true or false",
        ),
    ] {
        let error = expand(arguments, item).unwrap_err();
        assert!(error.contains(expected), "{arguments} {item}: {error}");
    }
}
