//! What happens on each plane, line by line, while it happens.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::time::Instant;

use anyhow::Result;
use futures::StreamExt;
use kube::api::DynamicObject;
use kube::runtime::{WatchStreamExt, watcher};
use popcell_api::kind::RESOURCE_CLAIM;
use popcell_test_support::{Kind, Plane, kind};
use tokio::task::JoinHandle;

use super::scene::Scene;
use super::{CITIES, NAMESPACE, describe};

type Describe = fn(&DynamicObject) -> String;

/// Watches every plane and prints what changes in the demo's namespace.
pub(super) struct Journal {
    started: Instant,
    colours: bool,
    tasks: Vec<JoinHandle<()>>,
}

impl Journal {
    /// Starts watching.
    pub(super) async fn start(scene: &Scene) -> Result<Self> {
        let mut journal = Self {
            started: Instant::now(),
            colours: std::io::stdout().is_terminal(),
            tasks: Vec::new(),
        };
        let (project, hub) = (&scene.project, &scene.hub);
        let behind = scene.hub_namespace.as_str();
        journal.watch((project, NAMESPACE), 0, kind::WORKLOAD, describe::workload);
        journal.watch(
            (project, NAMESPACE),
            0,
            kind::WORKLOAD_DEPLOYMENT,
            describe::workload_deployment,
        );
        journal.watch((hub, behind), 1, kind::PROPAGATION_POLICY, describe::policy);
        journal.watch((hub, behind), 1, kind::RESOURCE_BINDING, describe::resource_binding);
        journal.watch(
            (hub, behind),
            1,
            kind::WORKLOAD_DEPLOYMENT,
            describe::workload_deployment,
        );
        for (number, city) in CITIES.iter().enumerate() {
            let cell = scene.lab.plane(city.member).await?;
            journal.watch(
                (&cell, behind),
                number + 2,
                kind::WORKLOAD_DEPLOYMENT,
                describe::workload_deployment,
            );
            journal.watch((&cell, behind), number + 2, kind::INSTANCE, describe::instance);
            journal.watch((&cell, behind), number + 2, kind::POD, describe::pod);
        }
        journal.watch((project, NAMESPACE), 0, RESOURCE_CLAIM, describe::claim);
        Ok(journal)
    }

    /// Stops watching.
    pub(super) fn end(self) {
        for task in &self.tasks {
            task.abort();
        }
    }

    /// Prints the plane's objects of a kind whenever what is said about them changes.
    fn watch(&mut self, (plane, namespace): (&Plane, &str), colour: usize, kind: Kind, describe: Describe) {
        let api = plane.api(kind, Some(namespace));
        let line = Line {
            started: self.started,
            plane: plane.name().to_owned(),
            colour: self.colours.then_some(colour),
        };
        self.tasks.push(tokio::spawn(async move {
            let mut said: HashMap<String, String> = HashMap::new();
            let mut events = watcher(api, watcher::Config::default()).default_backoff().boxed();
            while let Some(event) = events.next().await {
                match event {
                    Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => {
                        let now = describe(&object);
                        let name = object.metadata.name.unwrap_or_default();
                        if said.get(&name) != Some(&now) {
                            line.print(&now);
                            said.insert(name, now);
                        }
                    }
                    Ok(watcher::Event::Delete(object)) => {
                        let name = object.metadata.name.unwrap_or_default();
                        line.print(&format!("{} {name} is gone", kind.kind));
                        said.remove(&name);
                    }
                    // The watcher connects again by itself.
                    Ok(watcher::Event::Init | watcher::Event::InitDone) | Err(_) => {}
                }
            }
        }));
    }
}

/// Where a line comes from.
struct Line {
    started: Instant,
    plane: String,
    colour: Option<usize>,
}

impl Line {
    fn print(&self, text: &str) {
        let seconds = self.started.elapsed().as_secs_f64();
        match self.colour {
            // Magenta, blue, green, yellow: readable on dark and on light.
            Some(number) => println!(
                "{seconds:6.1} s  \u{1b}[1;{}m{:7}\u{1b}[0m {text}",
                [35, 34, 32, 33][number % 4],
                self.plane
            ),
            None => println!("{seconds:6.1} s  {:7} {text}", self.plane),
        }
    }
}
