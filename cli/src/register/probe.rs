//! Asks the webhook for everything that is about to be registered, so that Karmada never meets a dead or wrong hook.

use std::time::Duration;

use crate::{
    endpoint::{
        Endpoint,
        call::{AskError, Connection, Sample},
        dial::{DialError, Trust},
    },
    exit::Failure,
};

use super::plan::Rule;

/// Calls each operation of each rule once, on a minimal object. Gives the number of calls.
pub(super) async fn probe(endpoint: &Endpoint, trust: &Trust, seconds: u8, rules: &[Rule]) -> Result<usize, Failure> {
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
    let remedy = match &error {
        AskError::Dial(DialError::Resolve { .. } | DialError::Connect { .. }) => {
            "start the webhook first; when only Karmada reaches it, and not this machine, use --skip-probe"
        }
        AskError::Dial(DialError::Handshake { .. }) => {
            "give the CA of its certificate with --ca-file, and a certificate that names this host"
        }
        _ => "look into the webhook's log",
    };
    Failure::Environment(format!("{error}; {remedy}"))
}
