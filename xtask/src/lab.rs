//! `lab`: a lab that stays, to look around in.

use anyhow::{Context, Result};
use clap::Subcommand;
use popcell_test_support::lab::Detached;
use popcell_test_support::{LabSpec, Member, artifacts};

use companions::PROJECT;

mod companions;
mod programs;

/// The members, each with its city.
const MEMBERS: [(&str, &str); 2] = [("dfw", "DFW"), ("ord", "ORD")];

/// Start, end or look at a lab that stays.
#[derive(Subcommand)]
pub(crate) enum Lab {
    /// Build the lab's programs
    Build,
    /// Start a Karmada with the members dfw (Push, city DFW) and ord (Pull, city ORD)
    Up {
        /// Also run what is outside popcell: a project with quota, and in each member a provider and network services;
        /// and say how to run our programs on it, by hand or under a debugger
        #[arg(long)]
        stand_ins: bool,
    },
    /// End it
    Down,
    /// Say what runs and how to talk to it
    Status,
    /// What `up --stand-ins` leaves running: ends with the lab
    #[command(hide = true)]
    StandIns,
}

impl Lab {
    /// Carries the command out.
    pub(crate) fn run(&self) -> Result<()> {
        match self {
            Self::Build => println!("{}", artifacts::lab_programs()?.display()),
            Self::Up { stand_ins } => {
                let spec = if *stand_ins { spec().plane(PROJECT) } else { spec() };
                let lab = Detached::up(&spec, &mut |line| println!("lab: {line}"))?;
                if *stand_ins {
                    companions::start(&lab)?;
                }
                report(&lab)?;
            }
            Self::Down => match Detached::find()? {
                Some(lab) => {
                    let companions = companions::of(&lab);
                    lab.down()?;
                    if let Some(companions) = companions {
                        companions.ended()?;
                    }
                    println!("lab: down");
                }
                None => println!("lab: none is up"),
            },
            Self::StandIns => companions::run()?,
            Self::Status => report(&Detached::find()?.context("no lab is up: cargo xtask lab up")?)?,
        }
        Ok(())
    }
}

/// A Push and a Pull member, each a city.
pub(crate) fn spec() -> LabSpec {
    let [(push, dallas), (pull, chicago)] = MEMBERS;
    LabSpec::karmada()
        .member(Member::push(push).city(dallas))
        .member(Member::pull(pull).city(chicago))
}

fn report(lab: &Detached) -> Result<()> {
    for (name, pid, alive) in lab.processes() {
        let state = if alive {
            format!("pid {pid}")
        } else {
            "ended, or started anew".to_owned()
        };
        println!("{name:40} {state}");
    }
    let companions = companions::of(lab);
    if let Some(companions) = &companions {
        println!("{}", companions.describe());
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
    if companions.is_some() {
        println!("\n{}", programs::lines(lab)?);
    }
    println!("\nto end it: cargo xtask lab down");
    Ok(())
}
