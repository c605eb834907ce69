//! `popcell register`: proves that the webhook answers, then writes our entry into Karmada. Idempotent.

pub mod plan;
pub mod shadow;

use std::{io::Write as _, path::Path, time::Duration};

use itertools::Itertools as _;
use jiff::Timestamp;
use popcell_core::object::Object;
use popcell_engine::Modules;
use serde_json::Value;

use crate::{
    args::{DataFormat, planes::Register},
    console::Console,
    endpoint::{
        Endpoint,
        call::{AskError, Connection, Sample},
        certificate::Bundle,
        dial::{DialError, Trust},
    },
    exit::{Exit, Failure, Outcome},
    interpreters,
    planes::{Karmada, Written, karmada::pulling},
};
use plan::{Entry, Location, Rule};

/// Runs the command.
pub fn run(args: &Register, console: &mut Console) -> Outcome {
    plan::names(&args.names.config_name, &args.names.webhook_name)?;
    let runtime = crate::runtime()?;
    if args.remove {
        return runtime.block_on(remove(args, console));
    }
    // Everything that can be known here is known before the first request.
    let location = location(args)?;
    let modules = load(args.module_dir.as_deref(), args.allow_core_kinds)?;
    let descriptions: Vec<_> = modules.iter().map(|module| module.description()).collect();
    let rules = plan::rules(&descriptions, &args.add_operation)?;
    let new_ca = args
        .endpoint
        .ca_file
        .as_deref()
        .map(interpreters::read_bundle)
        .transpose()?;
    runtime.block_on(register(args, location, rules, new_ca.as_ref(), console))
}

fn location(args: &Register) -> Result<Location, Failure> {
    match (&args.endpoint.url, &args.endpoint.service) {
        (Some(url), _) => {
            Endpoint::parse(url).map_err(Failure::Usage)?;
            Ok(Location::Url(url.clone()))
        }
        (None, Some(service)) => Ok(Location::Service(plan::service(service)?)),
        (None, None) => Err(Failure::Usage("give --url or --service".to_owned())),
    }
}

/// Loads the modules as the webhook does, and refuses what it would refuse.
pub(crate) fn load(folder: Option<&Path>, allow_core_kinds: bool) -> Result<Modules, Failure> {
    let folder = folder.ok_or_else(|| Failure::Usage("give --module-dir".to_owned()))?;
    interpreters::engine(allow_core_kinds)?
        .load_dir(folder)
        .map_err(|error| Failure::of_load(&error))
}

async fn register(
    args: &Register,
    location: Location,
    rules: Vec<Rule>,
    new_ca: Option<&Bundle>,
    console: &mut Console,
) -> Outcome {
    let karmada = Karmada::open(&args.cluster).await?;
    refuse_unreachable_for_agents(&location, &karmada.members().await?)?;
    refuse_shadows(args, &karmada, &rules, console).await?;

    let entry = |found: Option<&Value>| {
        let registered = found.and_then(|object| plan::registered_ca(object, &args.names.webhook_name));
        let merged = plan::ca_bundle(registered.as_deref(), new_ca, args.replace_ca, Timestamp::now());
        let entry = Entry {
            config: args.names.config_name.clone(),
            webhook: args.names.webhook_name.clone(),
            location: location.clone(),
            ca_pem: merged.bundle.as_ref().map(Bundle::to_pem),
            rules: rules.clone(),
            timeout_seconds: args.timeout_seconds,
        };
        (entry, merged)
    };
    let found = karmada.configuration(&args.names.config_name).await?;
    let (planned, merged) = entry(found.as_ref());
    for remark in &merged.remarks {
        writeln!(console.err, "{remark}")?;
    }
    if args.skip_probe {
        writeln!(console.err, "warning: webhook not probed (--skip-probe)")?;
    } else {
        let endpoint = dialled(&karmada, &location).await?;
        let trust = merged.bundle.clone().map_or(Trust::System, Trust::Bundle);
        let asked = probe(&endpoint, &trust, args.timeout_seconds, &rules).await?;
        writeln!(
            console.err,
            "probed {endpoint} as {}: {asked} operations answered",
            endpoint.server_name
        )?;
    }
    if args.dry_run {
        print(&planned.merged(found.as_ref()), args.output, console)?;
        return Ok(Exit::Success);
    }
    let written = karmada
        .write(&args.names.config_name, |found| Some(entry(found).0.merged(found)))
        .await?;
    tell(&args.names.config_name, &args.names.webhook_name, written, console)?;
    for rule in &rules {
        writeln!(console.out, "  {}: {}", rule.kind, rule.operations.iter().join(", "))?;
    }
    Ok(Exit::Success)
}

/// An agent of a Pull member calls from its own cluster, where a Service of the hub means nothing.
fn refuse_unreachable_for_agents(location: &Location, members: &[Object]) -> Result<(), Failure> {
    let pull = pulling(members);
    match location {
        Location::Service(_) if !pull.is_empty() => Err(Failure::Failed(format!(
            "failed to register a Service: the agents of Pull member(s) {pull} call the webhook too; use --url with an address \
             that they reach, and a certificate that names it"
        ))),
        _ => Ok(()),
    }
}

async fn refuse_shadows(
    args: &Register,
    karmada: &Karmada,
    rules: &[Rule],
    console: &mut Console,
) -> Result<(), Failure> {
    let (config, webhook) = (&args.names.config_name, &args.names.webhook_name);
    let of_rule = |rule: &Rule| {
        rule.operations
            .iter()
            .map(|operation| (rule.kind.clone(), *operation))
            .collect_vec()
    };
    let asked = rules.iter().flat_map(of_rule).collect_vec();
    let mut shadows = shadow::by_customization(&asked, &karmada.customizations().await?);
    let configurations = karmada.configurations().await?;
    shadows.extend(shadow::by_webhook(&asked, &configurations, config, webhook));
    if shadows.is_empty() {
        return Ok(());
    }
    let list = shadows.iter().map(|shadow| format!("\n  {shadow}")).join("");
    if args.allow_shadowed {
        writeln!(
            console.err,
            "registered although another interpreter answers first:{list}"
        )?;
        return Ok(());
    }
    Err(Failure::Failed(format!(
        "failed to register, since another interpreter would answer first:{list}\nremove it, choose names that sort \
         before it (--config-name, --webhook-name; customizations always come first), or register all the same with \
         --allow-shadowed"
    )))
}

async fn dialled(karmada: &Karmada, location: &Location) -> Result<Endpoint, Failure> {
    match location {
        Location::Url(url) => Endpoint::parse(url).map_err(Failure::Usage),
        Location::Service(reference) => {
            let found = karmada.service(reference).await?;
            Endpoint::of_service(reference, found.as_ref()).map_err(Failure::Failed)
        }
    }
}

/// Calls each operation of each rule once, on a minimal object, so that Karmada never meets a dead or wrong hook. Gives the
/// number of calls.
async fn probe(endpoint: &Endpoint, trust: &Trust, seconds: u8, rules: &[Rule]) -> Result<usize, Failure> {
    let mut connection = Connection::open(endpoint, trust, Duration::from_secs(seconds.into()))
        .await
        .map_err(unreached)?;
    let mut asked = 0;
    for rule in rules {
        let sample = Sample::of(&rule.kind);
        for operation in &rule.operations {
            match connection.ask(&sample.question(*operation)).await {
                Err(AskError::Refused { code, message }) if not_served(code) => {
                    return Err(Failure::Failed(format!(
                        "failed to register {operation} of {}: {endpoint} does not serve it ({message}); give --module-dir what the \
                         webhook loads",
                        rule.kind
                    )));
                }
                // A minimal object may well be refused: the interpreter answered.
                Ok(_) | Err(AskError::Refused { .. }) => asked += 1,
                Err(error) => return Err(unreached(error)),
            }
        }
    }
    Ok(asked)
}

/// The webhook's code for a kind or operation that no module has.
pub(crate) fn not_served(code: i32) -> bool {
    code == 501
}

#[allow(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn unreached(error: AskError) -> Failure {
    let fix = match &error {
        AskError::Dial(DialError::Resolve { .. } | DialError::Connect { .. }) => {
            "start the webhook first; when only Karmada reaches it, and not this machine, use --skip-probe"
        }
        AskError::Dial(DialError::Handshake { .. }) => {
            "give the CA of its certificate with --ca-file, and a certificate that names this host"
        }
        _ => "look into the webhook's log",
    };
    Failure::Environment(format!("{error}; {fix}"))
}

async fn remove(args: &Register, console: &mut Console) -> Outcome {
    let karmada = Karmada::open(&args.cluster).await?;
    let webhook = &args.names.webhook_name;
    let left = |found: Option<&Value>| found.and_then(|object| plan::without(object, webhook));
    if args.dry_run {
        match left(karmada.configuration(&args.names.config_name).await?.as_ref()) {
            Some(object) => print(&object, args.output, console)?,
            None => writeln!(
                console.err,
                "ResourceInterpreterWebhookConfiguration {} would be gone",
                args.names.config_name
            )?,
        }
        return Ok(Exit::Success);
    }
    let written = karmada.write(&args.names.config_name, left).await?;
    tell(&args.names.config_name, webhook, written, console)?;
    Ok(Exit::Success)
}

fn tell(config: &str, webhook: &str, written: Written, console: &mut Console) -> std::io::Result<()> {
    let what = match written {
        Written::Unchanged => "unchanged",
        Written::Created => "created",
        Written::Replaced => "updated",
        Written::Deleted => "deleted",
    };
    writeln!(
        console.out,
        "ResourceInterpreterWebhookConfiguration {config} ({webhook}): {what}"
    )
}

fn print(object: &Value, format: DataFormat, console: &mut Console) -> Result<(), Failure> {
    let text = match format {
        DataFormat::Json => format!("{object:#}\n"),
        DataFormat::Yaml => {
            let json = popcell_sdk::Json::parse(object.to_string())
                .map_err(|error| Failure::Environment(error.to_string()))?;
            popcell_sdk::test::yaml::to_yaml(&popcell_sdk::test::yaml::Node::of(&json))
        }
    };
    console.out.write_all(text.as_bytes())?;
    Ok(())
}
