//! `lab`: a lab that stays, to look around in.

use anyhow::{Context, Result};
use clap::Subcommand;
use popcell_test_support::lab::Detached;
use popcell_test_support::{LabSpec, Member, artifacts};

/// Start, end or look at a lab that stays.
#[derive(Subcommand)]
pub(crate) enum Lab {
    /// Build the lab's programs
    Build,
    /// Start a Karmada with the members dfw (Push, city DFW) and ord (Pull, city ORD)
    Up,
    /// End it
    Down,
    /// Say what runs and how to talk to it
    Status,
}

impl Lab {
    /// Carries the command out.
    pub(crate) fn run(&self) -> Result<()> {
        match self {
            Self::Build => println!("{}", artifacts::lab_programs()?.display()),
            Self::Up => report(&Detached::up(&spec(), &mut |line| println!("lab: {line}"))?),
            Self::Down => match Detached::find()? {
                Some(lab) => {
                    lab.down()?;
                    println!("lab: down");
                }
                None => println!("lab: none is up"),
            },
            Self::Status => report(&Detached::find()?.context("no lab is up: cargo xtask lab up")?),
        }
        Ok(())
    }
}

/// A Push and a Pull member, each a city.
pub(crate) fn spec() -> LabSpec {
    LabSpec::karmada()
        .member(Member::push("dfw").city("DFW"))
        .member(Member::pull("ord").city("ORD"))
}

fn report(lab: &Detached) {
    for (name, pid, alive) in lab.processes() {
        let state = if alive {
            format!("pid {pid}")
        } else {
            "ended, or started anew".to_owned()
        };
        println!("{name:40} {state}");
    }
    println!("\nlogs: {}\n", lab.logs().display());
    let karmadactl = lab.program("karmadactl");
    for (name, mode, url, kubeconfig) in lab.planes() {
        let mode = if mode.is_empty() {
            String::new()
        } else {
            format!(" ({mode})")
        };
        println!(
            "{name}{mode} at {url}\n  {} --kubeconfig {} get ns",
            karmadactl.display(),
            kubeconfig.display()
        );
    }
    println!("\nto end it: cargo xtask lab down");
}
