//! Native and WebAssembly give equal answers on every input.
//!
//! The inputs are those that the laws make: every object of a module's test files and thousands of odd variants of them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use popcell::interpreters::Interpreter;
use popcell_sdk::module::{Input, ModuleDef, Output, Run};
use popcell_sdk::test::{cases, laws};
use popcell_sdk::types::Description;
use popcell_sdk::{Error, Operation};
use popcell_test_support::{artifacts, workspace};

use crate::environment::Environment;

pub(crate) async fn compute(_: &Environment, _: &str) -> Result<()> {
    equal(compute_interpreter::module(), "compute")
}

pub(crate) async fn karmada_example(_: &Environment, _: &str) -> Result<()> {
    equal(karmada_example_interpreter::module(), "karmada-example")
}

pub(crate) async fn cloneset(_: &Environment, _: &str) -> Result<()> {
    equal(cloneset_interpreter::module(), "cloneset")
}

fn equal(native: ModuleDef, name: &str) -> Result<()> {
    let file = artifacts::modules()?.join(format!("{name}.wasm"));
    let wasm = Interpreter::module(&file, Duration::from_secs(30));
    let wasm = wasm.map_err(|failure| anyhow::anyhow!("{} does not load: {failure:?}", file.display()))?;
    let both = Both {
        native,
        wasm,
        asked: Cell::new(0),
        different: RefCell::default(),
    };
    let folder = workspace::root().join("interpreter-wasm").join(name).join("tests");
    let files = cases::read_folder(&folder, &folder).context("failed to read the module's cases")?;
    let seen = laws::Seen::of(files.iter().flat_map(|file| file.cases.iter().flatten()));
    for law in laws::of(&both.describe()) {
        if let Err(broken) = law.check(&both, &seen) {
            bail!("{}: {broken}", law.name);
        }
    }
    let different = both.different.into_inner();
    ensure!(
        different.is_empty(),
        "{} answers differ, for example:\n{}",
        different.len(),
        different.first().map_or("", String::as_str)
    );
    ensure!(
        both.asked.get() > 5_000,
        "only {} questions were asked",
        both.asked.get()
    );
    Ok(())
}

/// Answers as the native module does, and notes where the component answers otherwise.
struct Both {
    native: ModuleDef,
    wasm: Interpreter,
    asked: Cell<u64>,
    different: RefCell<BTreeSet<String>>,
}

impl Run for Both {
    fn describe(&self) -> Description {
        self.native.describe()
    }

    fn run(&self, operation: Operation, input: &Input) -> Result<Output, Error> {
        self.asked.set(self.asked.get() + 1);
        let (native, wasm) = (self.native.run(operation, input), self.wasm.run(operation, input));
        if native != wasm {
            let object = input.object.to_text();
            let text = format!("{operation}\n  native {native:?}\n  wasm   {wasm:?}\n  object {object}");
            self.different.borrow_mut().insert(text);
        }
        native
    }
}
