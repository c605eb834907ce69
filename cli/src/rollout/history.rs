//! `popcell rollout history`: which templates the Instances of each city were made from. There are no revisions to show.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use popcell_api::{annotations::RESTARTED_AT, kind, labels};
use popcell_core::{
    deployment::hash,
    object::{Fields as _, Listed, Object},
};
use serde_json::{Value, json};

use super::{Slot, member::Member, slots};
use crate::{
    args::{ListFormat, workloads::History},
    console::{Console, write_table},
    exit::{Exit, Outcome},
    planes::Project,
};

/// Runs the command.
pub(super) async fn run(args: &History, console: &mut Console) -> Outcome {
    let project = Project::open(&args.project, args.target.namespace.as_deref()).await?;
    let workload = project.workload(args.target.name()?).await?;
    let mut rows = Rows::of(&workload);
    let selector = format!("{}={}", labels::WORKLOAD_UID, workload.uid());
    let mut unreadable = Vec::new();
    let take = |page: Listed| {
        page.objects.iter().for_each(|one| rows.add(&Member::of(one)));
        unreadable.extend(page.unreadable);
    };
    project.here(kind::INSTANCE).each_page(&selector, take).await?;
    for one in &unreadable {
        let (name, why) = (&one.name, &one.why);
        writeln!(console.err, "Instance {name} cannot be read, skipped: {why}")?;
    }
    match args.output {
        ListFormat::Text => rows.text(&mut console.out)?,
        ListFormat::Json => writeln!(console.out, "{:#}", rows.json(&workload))?,
    }
    Ok(if unreadable.is_empty() {
        Exit::Success
    } else {
        Exit::Environment
    })
}

/// Instances of one template in one city.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Row {
    instances: usize,
    ready: usize,
    images: String,
}

/// All templates in use.
struct Rows {
    slots: Vec<Slot>,
    /// Hash of the present template.
    current: String,
    /// When the present template was last restarted; empty where it never was.
    restarted: String,
    /// By WorkloadDeployment and hash.
    in_use: BTreeMap<(String, String), Row>,
}

const HEADS: [&str; 7] = [
    "PLACEMENT",
    "CITY",
    "TEMPLATE",
    "INSTANCES",
    "READY",
    "RESTARTED-AT",
    "IMAGES",
];

impl Rows {
    fn of(workload: &Object) -> Self {
        let null = Value::Null;
        let template = workload.at("/spec/template").unwrap_or(&null);
        let annotations = template.pointer("/metadata/annotations");
        let restarted = annotations.and_then(|all| all.get(RESTARTED_AT)?.as_str());
        // The present template is shown where no Instance has it yet, too.
        let instance = Object::default().data(json!({ "spec": template.get("spec") }));
        let row = Row {
            images: Member::of(&instance).images,
            ..Row::default()
        };
        let (slots, current) = (slots(workload), hash(template));
        Self {
            in_use: slots
                .iter()
                .map(|slot| ((slot.name.clone(), current.clone()), row.clone()))
                .collect(),
            slots,
            current,
            restarted: restarted.unwrap_or_default().to_owned(),
        }
    }

    fn add(&mut self, member: &Member) {
        let row = self.in_use.entry((member.deployment.clone(), member.hash.clone()));
        let row = row.or_default();
        row.instances += 1;
        row.ready += usize::from(member.ready);
        if row.images.is_empty() {
            row.images.clone_from(&member.images);
        }
    }

    /// Placement, city, hash and row, in the order of the Workload, the present template first; cities that it does not name
    /// any more last, by WorkloadDeployment.
    fn sorted(&self) -> Vec<(&str, &str, &str, &Row)> {
        let mut sorted = Vec::new();
        for ((deployment, hash), row) in &self.in_use {
            let slot = self.slots.iter().position(|slot| slot.name == *deployment);
            let is_old = *hash != self.current;
            sorted.push(((slot.unwrap_or(usize::MAX), deployment, is_old), hash.as_str(), row));
        }
        sorted.sort_by_key(|(place, hash, _)| (*place, *hash));
        sorted
            .into_iter()
            .map(|((place, deployment, _), hash, row)| match self.slots.get(place) {
                Some(slot) => (slot.placement.as_str(), slot.city.as_str(), hash, row),
                None => (deployment.as_str(), "", hash, row),
            })
            .collect()
    }

    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut lines = vec![HEADS.map(str::to_owned)];
        for (placement, city, hash, row) in self.sorted() {
            let or_none = |text: &str| if text.is_empty() { "-" } else { text }.to_owned();
            let (mark, restarted) = if hash == self.current {
                (" (current)", self.restarted.as_str())
            } else {
                // Projections of Instances do not have the annotations of their template.
                ("", "")
            };
            lines.push([
                or_none(placement),
                or_none(city),
                format!("{}{mark}", or_none(hash)),
                row.instances.to_string(),
                row.ready.to_string(),
                or_none(restarted),
                or_none(&row.images),
            ]);
        }
        write_table(&lines, out)
    }

    fn json(&self, workload: &Object) -> Value {
        let or_null = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let templates = self.sorted().into_iter().map(|(placement, city, hash, row)| {
            let current = hash == self.current;
            json!({
                "placement": placement,
                "city": or_null(city),
                "template": or_null(hash),
                "current": current,
                "instances": row.instances,
                "ready": row.ready,
                "restartedAt": or_null(&self.restarted).filter(|_| current),
                "images": or_null(&row.images),
            })
        });
        json!({
            "namespace": workload.namespace(),
            "workload": workload.name(),
            "templates": templates.collect::<Vec<_>>(),
        })
    }
}
